"""The scripts are programs that test_scripts.py runs: importing them for their doctests would run them once more."""

collect_ignore_glob = ["scripts/*.py"]
