"""The file around a model: a ZIP archive whose every byte of content is accounted for.

    manifest.json      what the file holds, with size and SHA-256 of every other member
    manifest.sha256    SHA-256 of the manifest
    state.json         the objects of the model
    arrays/k.npy       its larger arrays

A reader learns the sizes before it allocates anything, and believes none of them: members are inflated up to the size they
claim and no further, that size is at most `MOST_GROWTH` times what is stored, and all of them together, with what their
texts take as objects, stay below a limit of the caller. The writer stores what would grow more uncompressed, so that no
honest file is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from certifit.files import written_whole
from certifit.persistence.errors import ModelFileError

__all__ = ["ARRAY", "FORMAT", "MOST_BYTES", "STATE", "parsed", "read_archive", "write_archive"]

FORMAT = 2
"""The format that is written; all up to it are read. Since 2, files name classes by their registered names."""
MANIFEST, DIGEST, STATE = "manifest.json", "manifest.sha256", "state.json"
ARRAY = "arrays/{}.npy"
MOST_GROWTH = 200
"""Decompressed bytes for each stored one that a reader accepts."""
WORTHWHILE = (0.01, 0.9)
"""Compressed share of a member between which compression is used; below, a reader would suspect a bomb."""
MOST_BYTES = 4 * 2**30
"""Bytes that a file may take in memory unless the caller allows more."""
_OBJECT = 64
"""Bytes that the smallest value of a JSON text takes in memory, at least."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_NAMES = re.compile(r"state\.json|arrays/(0|[1-9][0-9]{0,8})\.npy")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_archive(path: Path, manifest: dict[str, Any], members: Mapping[str, bytes]) -> None:
    """Write a model file in one piece: readers see the old file or the new one, never a part.

    The same content gives the same bytes.
    """
    listed = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in members.items()}
    text = json.dumps({**manifest, "format": FORMAT, "members": listed}, indent=1, sort_keys=True, allow_nan=False)
    head = text.encode("ascii")
    content = {MANIFEST: head, DIGEST: hashlib.sha256(head).hexdigest().encode("ascii"), **members}
    with written_whole(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, data in content.items():
            _add(archive, name, data)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.create_system = 3  # the same bytes on every system
    info.external_attr = 0o644 << 16
    small = len(zlib.compress(data, 1)) if data else 0
    low, high = WORTHWHILE
    info.compress_type = zipfile.ZIP_DEFLATED if low * len(data) < small < high * len(data) else zipfile.ZIP_STORED
    archive.writestr(info, data, compresslevel=1)


def read_archive(path: Path, most: int = MOST_BYTES) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the checked members of a model file."""
    if not path.exists():
        raise FileNotFoundError(f"path: there is no file {str(path)!r}.")
    if not path.is_file():
        raise ModelFileError(f"{str(path)!r} is not a file; give the path of a .cfit file.")
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _read(archive, str(path), os.fstat(file.fileno()).st_size, most)
        except ModelFileError:
            raise
        except zipfile.BadZipFile as error:
            start = _start(path)
            if start.startswith(b"PK"):
                raise _damaged(str(path), f"the archive is cut off or altered ({error})") from error
            raise ModelFileError(
                f"{str(path)!r} is not a Certifit model file: it starts with {start!r}. Model files are written by "
                "certifit.save."
            ) from error
        except Exception as error:  # whatever the readers of the standard library raise on what nobody has written
            raise _damaged(str(path), f"its content cannot be read ({error})") from error


def parsed(text: bytes, most: int) -> Any:
    """A JSON text as objects, unless they would take more than so many bytes: three bytes of text can be an object."""
    values = text.count(b",") + text.count(b"[") + text.count(b"{") + 1
    if len(text) + _OBJECT * values > most:
        raise ModelFileError(f"it has {values} values, more than max_bytes={most} have room for. {_CURE}")
    return json.loads(text)


_CURE = "If you trust the file, allow more by load(…, max_bytes=…)."


def _read(archive: zipfile.ZipFile, path: str, size: int, most: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    infos = _checked_members(archive, path, size)
    if MANIFEST not in infos or DIGEST not in infos:
        raise ModelFileError(
            f"{path!r} is an archive, but not a Certifit model file: it has no {MANIFEST}. Model files are written by "
            "certifit.save."
        )
    total = sum(info.file_size for info in infos.values())
    if total > most:
        raise ModelFileError(f"{path!r} holds {total} bytes, more than max_bytes={most}. {_CURE}")
    head = _inflated(archive, infos[MANIFEST])
    if _inflated(archive, infos[DIGEST]) != hashlib.sha256(head).hexdigest().encode("ascii"):
        raise _damaged(path, "the manifest does not match its digest")
    manifest = parsed(head, most)
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _damaged(path, "the manifest names no format version")
    if version > FORMAT:
        raise ModelFileError(
            f"{path!r} has format {version}, written by certifit {manifest.get('certifit')!s:.40}; this version reads "
            f"formats up to {FORMAT}. Update certifit to open it."
        )
    listed = manifest.get("members")
    if not isinstance(listed, dict) or STATE not in listed or set(listed) != set(infos) - {MANIFEST, DIGEST}:
        raise _damaged(path, "its members are not those of the manifest")
    members: dict[str, bytes] = {}
    for name, entry in listed.items():
        if not isinstance(entry, dict) or entry.get("bytes") != infos[name].file_size:
            raise _damaged(path, f"{name} does not have the size in the manifest")
        data = _inflated(archive, infos[name])
        if hashlib.sha256(data).hexdigest() != entry.get("sha256"):
            raise _damaged(path, f"{name} does not match its digest")
        members[name] = data
    return manifest, members


def _inflated(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The content of a member, up to the size it claims: a stream that holds more ends in a wrong digest."""
    with archive.open(info) as member:
        return member.read(info.file_size)


def _checked_members(archive: zipfile.ZipFile, path: str, size: int) -> dict[str, zipfile.ZipInfo]:
    """Members by name, none of them strange: judged by the directory alone, before anything is read."""
    infos: dict[str, zipfile.ZipInfo] = {}
    foreign = MANIFEST not in archive.namelist()
    for info in archive.infolist():
        name = info.filename
        if name not in (MANIFEST, DIGEST) and not _NAMES.fullmatch(name):
            if foreign:
                continue  # some other archive: the missing manifest is the better news
            raise _damaged(path, f"it has a member {name!r:.60} that no model file has")
        if name in infos:
            raise _damaged(path, f"it has two members {name!r}")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise _damaged(path, f"its member {name!r} is a link or a device, not data")
        if info.compress_type not in _METHODS:
            raise _damaged(path, f"its member {name!r} is compressed by method {info.compress_type}, not by deflate")
        stored = info.compress_type == zipfile.ZIP_STORED
        most = info.compress_size if stored else MOST_GROWTH * max(info.compress_size, 1)
        if info.file_size > most or info.compress_size > size:
            raise _damaged(path, f"its member {name!r} claims {info.file_size} bytes in {info.compress_size}")
        infos[name] = info
    if sum(info.compress_size for info in infos.values()) > size:
        raise _damaged(path, "its members overlap")
    return infos


def _damaged(path: str, what: str) -> ModelFileError:
    return ModelFileError(
        f"{path!r} is damaged or was altered: {what}. Copy it again from its source, or save it anew."
    )


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(8)
