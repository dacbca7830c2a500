"""`streamkernel configs` writes what a user needs after pip, and never over something."""

from pathlib import Path

from streamkernel.daemon.cli.program import main

ROOT = Path(__file__).parents[2]


def test_the_files_are_those_of_the_repository(tmp_path, capsys):
    folder = tmp_path / "a b"
    assert main(["configs", str(folder)]) == 0
    assert capsys.readouterr().out == (
        f"wrote {folder}. Try: cd '{folder}' && streamkernel run configs/quickstart.yaml\n"
    )
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert len(written) > 8
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    for path in written:
        assert path.read_bytes() == (ROOT / path.relative_to(folder)).read_bytes()


def test_a_folder_with_files_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine").write_text("kept")
    assert main(["configs", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"FOLDER: {tmp_path} is not empty. Name a new folder\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
