# ValueError in description.py:_histogram: 'minlength' must not be negative
from tests.fuzz.judge import check_table
data = 'a;y\n'.encode() + '10000000000000000000000;1.5\n٣;2.5\n'.encode() * 15
check_table(data)
