"""Programs of the system: what is there is left alone, what is missing is installed or named."""

import install_programs
import pytest


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Writes programs of these names into the only folder of the path."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(*names, lines="exit 0"):
        for name in names:
            (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
            (tmp_path / name).chmod(0o755)

    return write


def test_nothing_is_done_where_every_program_is_there_by_one_of_its_names(programs, capsys):
    programs("google-chrome", "pdflatex", "curl", "g++")
    assert install_programs.main() == 0
    assert capsys.readouterr() == ("", "")


def test_what_is_missing_is_named_where_it_cannot_be_installed(programs, capsys):
    programs("curl", "g++")
    assert install_programs.main() == 1
    told = capsys.readouterr().err
    assert "chromium, pdflatex from Debian's packages chromium fonts-dejavu-core texlive-latex-base" in told
    assert "curl" not in told


def test_only_what_is_missing_is_installed(programs, tmp_path, monkeypatch, capsys):
    programs("chromium", "curl", "g++")
    programs("apt-get", lines=f'echo "$@" >> {tmp_path}/calls')
    monkeypatch.setattr(install_programs.os, "geteuid", lambda: 0)
    assert install_programs.main() == 1  # apt-get said yes, and there is still no program
    assert "not on the path: pdflatex" in capsys.readouterr().err
    update, install = (tmp_path / "calls").read_text().splitlines()
    assert update.startswith("update")
    assert install.endswith("--no-install-recommends texlive-latex-base texlive-latex-recommended")
    program = tmp_path / "pdflatex"
    programs("apt-get", lines=f"echo > {program}; /bin/chmod +x {program}")
    assert install_programs.main() == 0


def test_a_refusal_of_apt_is_passed_on(programs, monkeypatch, capsys):
    programs("apt-get", lines="exit 100")
    monkeypatch.setattr(install_programs.os, "geteuid", lambda: 0)
    assert install_programs.main() == 1
    assert "apt-get could not install chromium" in capsys.readouterr().err


def test_who_is_not_root_needs_sudo_without_a_password(programs, monkeypatch):
    monkeypatch.setattr(install_programs.os, "geteuid", lambda: 1000)
    programs("apt-get")
    assert install_programs.choose_prefix() is None
    programs("sudo", lines="exit 1")
    assert install_programs.choose_prefix() is None
    programs("sudo")
    assert install_programs.choose_prefix()[:2] == ["sudo", "-n"]
