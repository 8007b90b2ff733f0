"""Programs as studies of whole nodes ran them."""

from .simulator import PREDICTED, cycles_of_all, simple

SANDIA = "SAND2019-10389, table 3-5: nvprof, kernels only"


def rows():
    yield simple("vectorAdd 163840", "vectoradd:elements=163840", "cycle", 5271, SANDIA, PREDICTED, cycles_of_all, "v100_node")
