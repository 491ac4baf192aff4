# ValueError in delimited.py: could not convert string to float: '²'
from tests.fuzz.judge import check_table
check_table("²,y\n".encode() + "²,0\n3,1\n".encode() * 20)
