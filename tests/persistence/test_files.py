"""Files that are damaged, altered, hostile or from elsewhere end in one clear line; saving never leaves a part."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certifit
from certifit import DecisionTreeClassifier, Lasso, Ridge
from certifit.persistence import ModelFileError, inspect_file, load, save
from certifit.persistence.container import FORMAT

X = np.random.default_rng(0).normal(size=(300, 3))
Y = X[:, 0] - X[:, 1] > 0


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with arrays inside and outside of the table."""
    model = DecisionTreeClassifier().fit(X + 0.3 * np.random.default_rng(1).normal(size=X.shape), Y)
    model.extra_ = np.arange(1000.0)
    return save(model, tmp_path_factory.mktemp("files") / "model.cfit", note="über")


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forged(path: Path, members: dict[str, bytes], *, sign: bool = True) -> Path:
    """The members as an archive whose digests are right again, as an attacker would write it."""
    members = dict(members)
    if sign:
        manifest = json.loads(members["manifest.json"])
        manifest["members"] = {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in members.items()
            if not name.startswith("manifest")
        }
        members["manifest.json"] = json.dumps(manifest).encode()
        members["manifest.sha256"] = hashlib.sha256(members["manifest.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def refused(path: Path, message: str | None = None) -> str:
    with pytest.raises(ModelFileError, match=message) as caught:
        load(path)
    text = str(caught.value)
    assert "\n" not in text
    assert repr(str(path)) in text
    return text


@settings(max_examples=300)
@given(data=st.data())
def test_no_flipped_byte_goes_unnoticed(original: Path, data: st.DataObject) -> None:
    good = original.read_bytes()
    where = data.draw(st.integers(0, len(good) - 1))
    mask = data.draw(st.integers(1, 255))
    check_altered(original, good[:where] + bytes([good[where] ^ mask]) + good[where + 1 :])


@given(data=st.data())
def test_no_cut_goes_unnoticed(original: Path, data: st.DataObject) -> None:
    good = original.read_bytes()
    length = data.draw(st.integers(0, len(good) - 1))
    path = original.with_name("cut.cfit")
    path.write_bytes(good[:length])
    refused(path)
    with pytest.raises(ModelFileError):
        inspect_file(path)


def test_every_byte_of_the_directory_and_the_headers(original: Path) -> None:
    """The parts of the archive that no digest covers, byte by byte."""
    good = original.read_bytes()
    with zipfile.ZipFile(original) as archive:
        starts = [(info.header_offset, 30 + len(info.filename)) for info in archive.infolist()]
        directory = archive.start_dir
    places = [k for start, length in starts for k in range(start, start + length)]
    for where in [*places, *range(directory, len(good))]:
        mask = 0x01 if where % 2 else 0xFF
        check_altered(original, good[:where] + bytes([good[where] ^ mask]) + good[where + 1 :])


def check_altered(original: Path, content: bytes) -> None:
    """Refused, or the same model: a date in the archive may change, what it holds may not."""
    path = original.with_name("altered.cfit")
    path.write_bytes(content)
    try:
        twin = load(path)
    except ModelFileError:
        return
    model = load(original)
    assert vars(twin).keys() == vars(model).keys()
    np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
    assert save(twin, original.with_name("again.cfit"), note="über").read_bytes() == original.read_bytes()


@given(st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.cfit"
    path.write_bytes(content)
    refused(path)


def test_files_of_another_kind(tmp_path: Path) -> None:
    text = tmp_path / "table.cfit"
    text.write_text("a,b\n1,2\n")
    refused(text, "not a Certifit model file.*certifit.save")
    other = tmp_path / "other.cfit"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("word/document.xml", "<xml/>")
    refused(other, "not a Certifit model file: it has no manifest.json")
    with pytest.raises(FileNotFoundError, match="no file"):
        load(tmp_path / "absent.cfit")
    refused(tmp_path, "not a file")
    empty = tmp_path / "empty.cfit"
    empty.touch()
    refused(empty)


def test_a_newer_format_asks_for_an_update(original: Path, tmp_path: Path) -> None:
    members = members_of(original)
    manifest = json.loads(members["manifest.json"])
    members["manifest.json"] = json.dumps({**manifest, "format": FORMAT + 1, "certifit": "9.1"}).encode()
    path = forged(tmp_path / "new.cfit", members)
    assert "Update certifit" in refused(path, f"format {FORMAT + 1}, written by certifit 9.1")
    with pytest.raises(ModelFileError, match="Update certifit"):
        inspect_file(path)


def test_altered_without_new_digests(original: Path, tmp_path: Path) -> None:
    members = members_of(original)
    for name in ("manifest.json", "state.json", "arrays/0.npy"):
        changed = {**members, name: members[name].replace(b"1", b"2", 1)}
        refused(forged(tmp_path / "x.cfit", changed, sign=False), "does not match its digest")
    renamed = {name.replace("arrays/0", "arrays/7"): data for name, data in members.items()}
    refused(forged(tmp_path / "x.cfit", renamed, sign=False), "members are not those")
    fewer = {name: data for name, data in members.items() if name != "arrays/0.npy"}
    refused(forged(tmp_path / "x.cfit", fewer, sign=False), "members are not those")


@pytest.mark.parametrize(
    "name", ["../evil", "/etc/passwd", "arrays/../../x.npy", "arrays/x.py", "C:\\x", "arrays/00.npy"]
)
def test_strange_members(name: str, original: Path, tmp_path: Path) -> None:
    refused(forged(tmp_path / "x.cfit", {**members_of(original), name: b"x"}), "member .* that no model file has")
    assert [path.name for path in tmp_path.iterdir()] == ["x.cfit"]


def test_links_bombs_and_doubles(original: Path, tmp_path: Path) -> None:
    members = members_of(original)
    path = tmp_path / "x.cfit"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16 if name == "state.json" else 0
            archive.writestr(info, data)
    refused(path, "link or a device")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, bytes(10**7) if name == "arrays/0.npy" else data)
    refused(path, "claims 10000000 bytes")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("state.json", members["state.json"])
    refused(path, "two members")


def test_an_honest_file_of_zeros_is_not_taken_for_a_bomb(tmp_path: Path) -> None:
    zeros = np.zeros(10**6)
    np.testing.assert_array_equal(load(save(zeros, tmp_path / "zeros.cfit")), zeros)
    ones = ["a"] * 10**5
    assert load(save(ones, tmp_path / "ones.cfit")) == ones


def npy(header: str) -> bytes:
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


HOSTILE_ARRAYS = {
    "absurd shape": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n"),
    "negative shape": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }\n"),
    "overflowing shape": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n"),
    "objects": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n") + b"cos\nsystem\n",
    "objects inside": npy("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }\n") + bytes(8),
    "code": npy("{'descr': __import__('os').getpid(), 'fortran_order': False, 'shape': (1,), }\n"),
    "no array": b"hello",
    "nothing": b"",
    "pickle": b"\x80\x04\x95\x1b\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
}


@pytest.mark.parametrize("what", HOSTILE_ARRAYS)
def test_hostile_arrays(what: str, original: Path, tmp_path: Path) -> None:
    refused(
        forged(tmp_path / "x.cfit", {**members_of(original), "arrays/0.npy": HOSTILE_ARRAYS[what]}), "not as certifit"
    )


def entry(**fields: Any) -> Callable[[], Any]:
    return lambda: {"root": {"ref": 0}, "objects": [fields]}


RIDGE = "Ridge"
HOSTILE_TABLES: dict[str, Callable[[], Any]] = {
    "foreign class": entry(kind="object", **{"class": "subprocess.Popen"}, state={}),
    "function as class": entry(kind="object", **{"class": "os.system"}, state={}),
    "learner": entry(kind="object", **{"class": "sklearn.linear_model.LinearRegression"}, state={}),
    "path of a class": entry(kind="object", **{"class": "certifit.models.linear.regression.Ridge"}, state={}),
    "public module": entry(kind="object", **{"class": "losses"}, state={}),
    "not offered by a module": entry(kind="object", **{"class": "plots.np"}, state={}),
    "function of a module": entry(kind="object", **{"class": "metrics.log_loss"}, state={}),
    "private name": entry(kind="object", **{"class": "_EXPORTS"}, state={}),
    "no name": entry(kind="object", **{"class": ""}, state={}),
    "native": entry(kind="object", **{"class": "_native.tree.Forest"}, state={}),
    "exception": entry(kind="object", **{"class": "NotSeparableError"}, state={}),
    "ours as trusted": entry(kind="object", **{"class": RIDGE, "trusted": True}, state={}),
    "hidden method": entry(kind="object", **{"class": RIDGE}, state={"predict": 1}),
    "hidden class": entry(kind="object", **{"class": RIDGE}, state={"__class__": 1}),
    "hidden dictionary": entry(kind="object", **{"class": RIDGE}, state={"__dict__": 1}),
    "no identifier": entry(kind="object", **{"class": RIDGE}, state={"a b": 1}),
    "state of a list": entry(kind="object", **{"class": RIDGE}, state=[1]),
    "cached native object": entry(kind="object", **{"class": "TreeArrays"}, state={"_native": 1}),
    "unknown kind": entry(kind="value", items=[]),
    "kind of a method": entry(kind="values", items=[]),
    "no kind": entry(items=[]),
    "reference to nothing": lambda: {"root": {"ref": 5}, "objects": []},
    "negative reference": lambda: {"root": {"ref": -1}, "objects": [{"kind": "list", "items": []}]},
    "not a value": lambda: {"root": [1], "objects": []},
    "tuple in itself": entry(kind="tuple", items=[{"ref": 0}]),
    "no table": lambda: {"root": 1, "objects": {}},
    "no root": lambda: {"objects": []},
    "a list": lambda: [],
    "unhashable key": lambda: {
        "root": {"ref": 0},
        "objects": [{"kind": "dict", "pairs": [[{"ref": 1}, 1]]}, {"kind": "list", "items": []}],
    },
    "short array": entry(kind="array", dtype="<f8", shape=[3], order="C", data="AAAA"),
    "absurd array": entry(kind="array", dtype="<f8", shape=[10**15], order="C", data="AAAA"),
    "array of objects": entry(kind="array", dtype="|O", shape=[1], order="C", data="AAAAAAAAAAA="),
    "no dtype": entry(kind="dtype", name="f8,f8"),
    "no type": entry(kind="type", name="numpy.load"),
    "module as type": entry(kind="type", name="os.system"),
    "strange bits": entry(kind="bit_generator", name="default_rng", state=None, seed=None),
    "indices outside": lambda: {
        "root": {"ref": 0},
        "objects": [
            {
                "kind": "sparse",
                "format": "csr",
                "array": True,
                "shape": [1, 2],
                "parts": [{"ref": k} for k in (1, 2, 3)],
            },
            {"kind": "array", "dtype": "<f8", "shape": [1], "order": "C", "data": "AAAAAAAA8D8="},
            {"kind": "array", "dtype": "<i4", "shape": [1], "order": "C", "data": "/wAAAA=="},
            {"kind": "array", "dtype": "<i4", "shape": [2], "order": "C", "data": "AAAAAAEAAAA="},
        ],
    },
    "bits that point outside": lambda: {
        "root": {"ref": 0},
        "objects": [
            {"kind": "random_state", "state": {"ref": 1}},
            {
                "kind": "dict",
                "pairs": [["bit_generator", "MT19937"], ["state", {"ref": 2}], ["has_gauss", 0], ["gauss", 0.0]],
            },
            {"kind": "dict", "pairs": [["key", {"ref": 3}], ["pos", 10**6]]},
            {"kind": "array", "dtype": "<u4", "shape": [624], "order": "C", "data": "AAAA" * 832},
        ],
    },
    "absurd pool": entry(
        kind="seed", parts={"entropy": 1, "spawn_key": 0, "pool_size": 10**12, "n_children_spawned": 0}
    ),
    "endless lists": lambda: {
        "root": {"ref": 0},
        "objects": [
            {"kind": "sparse", "format": "lil", "array": True, "shape": [10**12, 2], "parts": [{"ref": 1}] * 3},
            {"kind": "array", "dtype": "<i4", "shape": [0], "order": "C", "data": ""},
        ],
    },
    "absent member": entry(kind="array", member="arrays/9.npy"),
    "function": entry(kind="trusted", name="os.system"),
    "deep": lambda: {
        "root": {"ref": 0},
        "objects": [{"kind": "tuple", "items": [{"ref": k + 1}]} for k in range(9999)],
    },
}


@pytest.mark.parametrize("what", HOSTILE_TABLES)
def test_hostile_tables(what: str, original: Path, tmp_path: Path) -> None:
    members = {**members_of(original), "state.json": json.dumps(HOSTILE_TABLES[what]()).encode()}
    refused(forged(tmp_path / "x.cfit", members))


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 10_000, b"\xff\xfe", b'{"root": NaN}', b"1" * 5000])
def test_hostile_text(text: bytes, original: Path, tmp_path: Path) -> None:
    refused(forged(tmp_path / "x.cfit", {**members_of(original), "state.json": text}))
    members = {**members_of(original), "manifest.json": text}
    members["manifest.sha256"] = hashlib.sha256(text).hexdigest().encode()
    refused(forged(tmp_path / "x.cfit", members, sign=False))


@given(data=st.data())
def test_forged_tables_never_crash(
    original: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Values of an honest table exchanged at random, digests right: an error of ours, or some model."""
    members = members_of(original)
    table = json.loads(members["state.json"])
    pieces = [entry for entry in table["objects"] if entry]
    for _ in range(data.draw(st.integers(1, 3))):
        target = data.draw(st.sampled_from(pieces))
        key = data.draw(st.sampled_from(sorted(target)))
        target[key] = data.draw(
            st.one_of(
                st.none(),
                st.integers(-3, 3),
                st.text(max_size=3),
                st.sampled_from([other[k] for other in pieces for k in other]),
            )
        )
    changed = {**members, "state.json": json.dumps(table).encode()}
    path = forged(tmp_path_factory.getbasetemp() / "forged.cfit", changed)
    with suppress(ModelFileError):
        load(path)


def test_trees_that_point_outside_are_refused_before_they_are_walked(original: Path) -> None:
    """Digests are no signatures: native code checks what it walks on."""
    model = load(original)
    model._tree.nodes = model._tree.nodes.copy()
    model._tree.nodes[0, 1] = (10**6) << 32
    with pytest.raises(ValueError, match="outside of its tree"):
        load(save(model, original.with_name("pointing.cfit"))).predict(X)


def test_the_bytes_are_the_same_every_time(tmp_path: Path) -> None:
    model = {"words": {"one", "two", "three"}, "model": Ridge(), "rng": np.random.default_rng(0)}
    assert save(model, tmp_path / "a").read_bytes() == save(model, tmp_path / "b").read_bytes()


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(Ridge(alpha=3.0), tmp_path / "model.cfit")
    with pytest.raises(TypeError):
        save(Ridge(alpha=object()), path)

    def fails(*_: Any) -> None:
        raise OSError("no space left")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            with pytest.raises(OSError, match="no space left"):
                save(Lasso(), path)
        assert load(path).alpha == 3.0
        assert [item.name for item in tmp_path.iterdir()] == ["model.cfit"]


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_modes_and_links_are_kept(tmp_path: Path) -> None:
    path = save(Ridge(), tmp_path / "model.cfit")
    path.chmod(0o640)
    link = tmp_path / "link.cfit"
    link.symlink_to(path)
    save(Lasso(), link)
    assert link.is_symlink()
    assert isinstance(load(path), Lasso)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="note must be text"):
        save(Ridge(), tmp_path / "x", note=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="path must be text or a path"):
        save(Ridge(), io.BytesIO())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="trusted must be a list"):
        load(tmp_path / "x", trusted="Ridge")
    with pytest.raises(TypeError, match="trusted must hold classes"):
        load(tmp_path / "x", trusted=[3])
    with pytest.raises(FileNotFoundError, match=r"folder .* does not exist"):
        save(Ridge(), tmp_path / "absent" / "x.cfit")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(Ridge(), tmp_path)


def test_inspection_builds_nothing(original: Path) -> None:
    found = inspect_file(original)
    assert found.model == "DecisionTreeClassifier"
    assert found.fitted
    assert found.note == "über"
    assert found.n_features == 3
    assert found.classes == [False, True]
    assert found.certificate is not None
    assert found.certificate["kind"] == "none"
    assert found.certifit == certifit.__version__
    assert json.loads(json.dumps(found.as_dict()))["parameters"]["criterion"] == "gini"
    assert "criterion='gini'" in str(found)
    assert "classes: False, True" in str(found)


def test_another_release_of_scikit_learn_is_mentioned(tmp_path: Path) -> None:
    from sklearn.pipeline import make_pipeline

    members = members_of(save(make_pipeline(Ridge()), tmp_path / "pipeline.cfit"))
    manifest = json.loads(members["manifest.json"])
    manifest["versions"]["scikit-learn"] = "0.1.0"
    members["manifest.json"] = json.dumps(manifest).encode()
    with pytest.warns(UserWarning, match=r"sklearn\.pipeline\.Pipeline of scikit-learn 0\.1\.0"):
        load(forged(tmp_path / "old.cfit", members))
