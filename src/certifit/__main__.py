"""``python -m certifit`` is the ``certifit`` command."""

from certifit.cli import main

if __name__ == "__main__":
    main()
