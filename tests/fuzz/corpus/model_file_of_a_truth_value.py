# TypeError in judge.py:check_model_file: an integer is required
from tests.fuzz.files import put, sealed, unsealed
from tests.fuzz.judge import check_model_file
members = unsealed('format2/glm')
put(members, 'state.json', ['objects', 0, 'state', 'n_features_in_'], True)
check_model_file(sealed(members))
