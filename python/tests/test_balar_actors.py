"""The module against the program that BALAR_ACTORS names."""

import json
import shutil
from pathlib import Path

import pytest

import balar_actors as balar

FRAMES = ["pandas", "polars"]


@pytest.fixture(scope="module")
def vectoradd(tmp_path_factory: pytest.TempPathFactory) -> balar.Run:
    folder = tmp_path_factory.mktemp("run")
    options = ["--sample-interval", "1us", "--samples", "csv"]
    return balar.run("v100_node", workload="vectoradd", parameters={"elements": 1000}, output=folder, options=options)


def test_the_program_is_found() -> None:
    assert balar.binary().is_file()
    assert balar.version().count(".") == 2


@pytest.mark.parametrize("frame", FRAMES)
def test_a_run_is_read_into_frames(vectoradd: balar.Run, frame: balar.FrameKind) -> None:
    assert (vectoradd.topology, vectoradd.completed, vectoradd.verified) == ("v100_node", True, True)
    assert vectoradd.seconds > 0
    kernels = vectoradd.kernels(frame)
    assert list(kernels["name"]) == ["vectorAdd"]
    assert list(kernels["warps_launched"]) == [32]
    statistics = vectoradd.statistics(frame)
    total = sum(value for what, value in zip(statistics["what"], statistics["value"]) if what == "warps_launched")
    assert total == 32
    assert len(vectoradd.samples("node", frame)) > 0 and len(vectoradd.samples("launch", frame)) > 0
    assert "vectoradd" in repr(vectoradd)


def test_a_folder_is_read_again(vectoradd: balar.Run) -> None:
    assert balar.read_run(vectoradd.path).document == vectoradd.document


def test_a_temporary_folder_lives_as_long_as_its_run() -> None:
    run = balar.run("p100_node", workload="vectoradd", parameters={"elements": 256}, settings={"gpu.clock": "1 GHz"})
    path = run.path
    assert path.is_dir()
    del run
    assert not path.exists()


def test_mistakes_are_told(vectoradd: balar.Run, tmp_path: Path) -> None:
    with pytest.raises(balar.RunFailed, match="did you mean") as failed:
        balar.run("v100_node", workload="vectorad")
    assert failed.value.code == 2
    with pytest.raises(FileNotFoundError, match="no folder of a run"):
        balar.read_run(tmp_path)
    with pytest.raises(ValueError, match="not both"):
        balar.run("v100_node", workload="lud", program=["./app"])
    with pytest.raises(ValueError, match="name one"):
        balar.run("v100_node", parameters={"size": 64})
    with pytest.raises(ValueError, match="expected 'pandas' or 'polars'"):
        vectoradd.kernels("numpy")  # type: ignore[arg-type]
    document = dict(vectoradd.document, schema=99)
    (tmp_path / "stats.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match="schema 99"):
        balar.read_run(tmp_path)


def test_no_program_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BALAR_ACTORS", "/nonexistent/balar-actors")
    with pytest.raises(FileNotFoundError, match="BALAR_ACTORS names"):
        balar.binary()


def test_programs_run() -> None:
    program = shutil.which("true")
    assert program is not None
    run = balar.run("v100_node", program=[program])
    assert run.completed and len(run.document["kernels"]) == 0


@pytest.mark.parametrize("frame", FRAMES)
def test_sweeps(tmp_path: Path, frame: balar.FrameKind) -> None:
    settings = {"workload.elements": [256, 512], "gpu.clock": ["1 GHz"]}
    sweep = balar.sweep("v100_node", workload="vectoradd", settings=settings, output=tmp_path / "sweep", jobs=1)
    results = sweep.results(frame)
    assert list(results["status"]) == ["done", "done"]
    assert list(results["workload.elements"]) == [256, 512]
    assert list(sweep.kernels(frame)["kernel"]) == ["vectorAdd", "vectorAdd"]
    assert sweep.point(1).document["workload"]["parameters"]["elements"] == 512
    with pytest.raises(FileNotFoundError, match="not finished"):
        sweep.point(2)
    assert balar.read_sweep(sweep.path).svg.startswith("<svg")


def test_a_point_that_fails_leaves_the_others(tmp_path: Path) -> None:
    settings = {"workload.size": [32, 33]}
    with pytest.raises(balar.RunFailed):
        balar.sweep("v100_node", workload="lud", settings=settings, output=tmp_path / "sweep")
    sweep = balar.sweep("v100_node", workload="lud", settings=settings, output=tmp_path / "sweep", check=False)
    assert list(sweep.results()["status"]) == ["done", "bad_configuration"]


def test_rooflines(vectoradd: balar.Run) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    options = ["--part", "levels", "--growth", "4", "--largest", "64KiB"]
    roofline = balar.roofline("k20x_node", runs=[vectoradd], by_kernel=True, options=options)
    ceilings = roofline.ceilings()
    assert "FP64" in list(ceilings["ceiling"])
    assert list(roofline.placement()["name"]) == ["vectorAdd"]
    assert roofline.document["empirical"]["gbytes"]["data"]
    assert roofline._repr_svg_().startswith("<svg")
    assert roofline.plot().get_xlabel() == "FLOP/byte"
    with pytest.raises(FileNotFoundError, match="there are bandwidth, ceilings"):
        roofline.table("reuse")
    assert balar.read_roofline(roofline.path).svg == roofline.svg


def test_a_plot_has_the_colours_of_the_chart_and_names_what_it_leaves_out(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    levels = {"data": [["L2", 500.0], ["DRAM", 100.0]]}
    document = {"empirical": {"gbytes": levels, "gflops": {"data": [["GFLOPs", 1000.0]]}}}
    (tmp_path / "roofline.json").write_text(json.dumps(document))
    columns = "name,time_us,gigaflops,flops_per_l1_byte,flops_per_l2_byte,flops_per_dram_byte,roof,percent_of_roof"
    rows = ["gemm,1,50,0.5,2,,L2,5", "bfs,1,0,0,0,0,,"]
    (tmp_path / "placement.csv").write_text("\n".join([columns, *rows]) + "\n")
    axes = balar.read_roofline(tmp_path).plot()
    colours = {line.get_label(): line.get_color() for line in axes.get_lines()}
    # Those of the program's own chart: green for the L2, vermilion for DRAM.
    assert (colours["L2 500 GB/s"], colours["DRAM 100 GB/s"]) == ("#009E73", "#D55E00")
    marks = [line for line in axes.get_lines() if line.get_marker() not in ("None", None, "")]
    shown = [(line.get_color(), list(line.get_xdata()), list(line.get_ydata())) for line in marks]
    assert shown == [("#009E73", [2.0], [50.0])]
    assert "gemm" in [text.get_text() for text in axes.texts]
    assert axes.get_xlabel() == "FLOP/byte\nnot drawn: bfs"
