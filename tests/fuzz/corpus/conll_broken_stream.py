# error in conll.py:_lines: Error -3 while decompressing data: invalid distance too far back
# now refused: the compressed file is broken
import gzip
from tests.fuzz.judge import check_text
data = bytearray(b'# text = x\n\x1b[2J\t999999999999999999999999999999\nw1\tw1\n\nw0\tw0\nw1\tw1\nw2\n\n# text = x\nw0\tw0\n#\t-1\nw2\tw2\nw3\tw3\n')
data = bytearray(gzip.compress(data))
data[55:55] = b'\xc3\xa9'
check_text(data, '.txt.gz')
