"""The rows of microbenchmarks.csv and applications.csv: a module for each group, each with a function `rows`."""
