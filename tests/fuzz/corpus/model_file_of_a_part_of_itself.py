# does not end within 20 s
from tests.fuzz.files import put, sealed, unsealed
from tests.fuzz.judge import check_model_file
members = unsealed('format1/multiclass')
put(members, 'state.json', ['objects', 4, 'items', 0, 'ref'], 0)
check_model_file(sealed(members))
