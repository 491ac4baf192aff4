# ValueError in conll.py:parents: invalid literal for int() with base 10: '²'
# now refused: it must be a word or 0
from tests.fuzz.judge import check_text
cells = ["1", "a", "_", "_", "_", "_", "²", "_", "_", "_"]
check_text("\t".join(cells).encode(), ".conllu")
