"""Pickles that took over the process when snapshots were pickles: see `test_snapshot_attacks`."""

import pickle
import struct


def _name(module, name):
    return f"c{module}\n{name}\n".encode()


def _text(text):
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _bytes(content):
    return b"C" + bytes([len(content)]) + content


def patched_class():
    """Sets an attribute of a class: BUILD with a state for slots calls setattr."""
    state = b"(N}" + _text("guarantee") + _text("proven") + b"st"
    return b"\x80\x04" + _name("partita.optimize.optimizer", "Optimizer") + state + b"b."


def changed_dtype():
    """Makes eight bytes of an array a pointer to an object, by changing its dtype afterwards."""
    dtype = _name("numpy", "dtype") + b"(" + _text("V8") + b"\x89\x88tRq\x00"
    array = _name("numpy._core.multiarray", "_reconstruct")
    array += b"(" + _name("numpy", "ndarray") + b"(K\x00t" + _bytes(b"b") + b"tR"
    array += b"(K\x01(K\x01t" + b"h\x00" + b"\x89" + _bytes(b"\x41" * 8) + b"tb"
    objects = _name("numpy", "dtype") + b"(" + _text("O") + b"\x89\x88tR"
    fields = b"}" + _text("f") + objects + b"K\x00\x86s"
    state = b"(K\x03" + _text("|") + b"N" + _text("f") + b"\x85" + fields + b"K\x08K\x01K\x3ft"
    return b"\x80\x04" + dtype + b"0" + array + b"h\x00" + state + b"b\x86."


class Evil:
    """Prints as it is read."""

    def __reduce__(self):
        return print, ("this runs",)


def running_code():
    """Calls a function."""
    return pickle.dumps(Evil())


ATTACKS = {"class": patched_class, "dtype": changed_dtype, "code": running_code}
