"""Themes are data: checked whole, readable in every colour depth, never fatal."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from rich.color_triplet import ColorTriplet
from rich.terminal_theme import DEFAULT_TERMINAL_THEME

from tuimon.app.look.roles import ROLES
from tuimon.app.look.themes import ORDER, Look, Theme, ThemeError, load_themes, parse_look, parse_theme, plain

THEMES = load_themes(user=Path("/nonexistent")).themes

BACKDROP = {"rule", "grid"}
"""Lines that structure the screen and say nothing themselves."""


def luminance(red: int, green: int, blue: int) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)


def linear(value: int) -> float:
    """A channel of sRGB as a share of the light."""
    share = value / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def shown(name: str, system: ColorSystem) -> ColorTriplet:
    """A colour as a terminal with this many colours shows it."""
    return Color.parse(name).downgrade(system).get_truecolor(DEFAULT_TERMINAL_THEME)


def contrast(one: str, other: str, system: ColorSystem) -> float:
    """Contrast ratio of two colours as a terminal with this many colours shows them."""
    values = [luminance(*shown(name, system)) for name in (one, other)]
    bright, dark = max(values), min(values)
    return (bright + 0.05) / (dark + 0.05)


VISIONS = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""What becomes of linear RGB in each (Machado, Oliveira and Fernandes 2009, severity 1)."""

MEANINGS = ("good", "warn", "bad", "break", "recompile", "region", "text")
"""Roles whose colours are to be told apart."""


def lab(light: tuple[float, float, float]) -> tuple[float, float, float]:
    """CIE L*a*b* of linear RGB, D65."""
    red, green, blue = light

    def curve(share: float) -> float:
        return share ** (1 / 3) if share > 216 / 24389 else (24389 / 27 * share + 16) / 116

    x = curve((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047)
    y = curve(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    z = curve((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(color: str, system: ColorSystem, vision: str) -> tuple[float, float, float]:
    """A colour as someone of this vision sees it, in L*a*b*."""
    light = [linear(value) for value in shown(color, system)]
    red, green, blue = (min(1.0, max(0.0, sum(a * b for a, b in zip(row, light, strict=True)))) for row in VISIONS[vision])
    return lab((red, green, blue))


def closest(theme: Theme, system: ColorSystem, vision: str) -> tuple[float, str, str]:
    """The two of `MEANINGS` that look most alike, and how far apart they are (CIE 1976)."""
    places = {role: seen(theme.looks[role].color or "", system, vision) for role in MEANINGS}
    return min((math.dist(places[one], places[other]), one, other) for one, other in itertools.combinations(MEANINGS, 2))


def test_the_shipped_themes_are_all_there() -> None:
    loaded = load_themes(user=Path("/nonexistent"))
    assert tuple(loaded.themes) == ORDER
    assert loaded.problems == []


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_every_role_has_a_look(theme: Theme) -> None:
    assert set(theme.looks) == set(ROLES)


@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT, ColorSystem.STANDARD])
@pytest.mark.parametrize("theme", [theme for theme in THEMES.values() if not theme.ansi], ids=lambda theme: theme.name)
def test_text_can_be_read(theme: Theme, system: ColorSystem) -> None:
    text = theme.looks["text"]
    assert text.color and text.background
    for role, look in theme.looks.items():
        ratio = contrast(look.color or text.color, look.background or text.background, system)
        least = 3.0 if role in {"roof", "spark-dim", "dim", "quiet"} or system is ColorSystem.STANDARD else 4.5
        assert ratio >= (1.7 if role in BACKDROP else least), f"{role} has a contrast of {ratio:.1f}"


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize(
    ("name", "system", "least"),
    [
        ("colour-blind", ColorSystem.TRUECOLOR, 20),
        ("colour-blind", ColorSystem.EIGHT_BIT, 20),
        ("dark", ColorSystem.TRUECOLOR, 15),
        ("dark", ColorSystem.EIGHT_BIT, 12),
        ("light", ColorSystem.TRUECOLOR, 15),
        ("high-contrast", ColorSystem.TRUECOLOR, 15),
        ("high-contrast", ColorSystem.EIGHT_BIT, 10),
    ],
)
def test_meanings_can_be_told_apart_with_any_colour_vision(name: str, system: ColorSystem, least: float, vision: str) -> None:
    apart, one, other = closest(THEMES[name], system, vision)
    assert apart >= least, f"{one} and {other} are {apart:.1f} apart"


def test_roles_of_drawings_exist() -> None:
    from tuimon.draw import roofline

    assert set(roofline.ROLES) <= set(ROLES)


def test_no_colour_means_no_colour() -> None:
    for look in THEMES["mono"].looks.values():
        assert look.color in (None, "default") and look.background in (None, "default")


@pytest.mark.parametrize(
    ("text", "look"),
    [
        ("bold #56b4e9", Look("#56b4e9", None, frozenset(["bold"]))),
        ("#FFFFFF on #000000", Look("#ffffff", "#000000")),
        ("", Look()),
        ("underline", Look(None, None, frozenset(["underline"]))),
    ],
)
def test_looks(text: str, look: Look) -> None:
    assert parse_look(text, ansi=False) == look


@pytest.mark.parametrize("text", ["#12", "blue", "#112233 #445566", "on", "on bold", "blink", "#11223g"])
def test_wrong_looks(text: str) -> None:
    with pytest.raises(ThemeError):
        parse_look(text, ansi=False)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("name = ", "not TOML"),
        ('name = "x"\ncolour = "red"', "unknown colour"),
        ('name = "Not a name"', "`name` must be"),
        ('name = "x"', "no look for"),
        ('name = "x"\nbase = "nothing"', "is none of"),
        ('name = "x"\nbase = "dark"\n[roles]\nnothing = "bold"', "no role 'nothing'"),
        ('name = "x"\nbase = "dark"\n[roles]\ndim = 3', "write its look as a text"),
        ('name = "x"\nbase = "dark"\n[roles]\ndim = "#zzz"', 'role "dim"'),
        ('name = "x"\nbase = "dark"\ndark = "yes"', "must be true or false"),
        ('name = "x"\nbase = "dark"\nansi = true', "has ansi = false"),
        ('name = "x"\nbase = "dark"\nroles = 3', "must be a table"),
        ('name = "x"\nbase = "dark"\n[roles]\ntext = "#ffffff"', "needs both colours"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(document: str, reason: str) -> None:
    with pytest.raises(ThemeError, match=reason.replace("(", r"\(")):
        parse_theme(document, THEMES)


def test_a_users_theme_starts_from_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\nbase = "dark"\n[roles]\nbreak = "bold #ff0000"\n')
    (tmp_path / "broken.toml").write_text("name = [")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "huge.toml").write_text("#" * 200_000)
    loaded = load_themes(user=tmp_path)
    assert list(loaded.themes) == [*ORDER, "mine"]
    assert loaded.themes["mine"].looks["break"] == Look("#ff0000", None, frozenset(["bold"]))
    assert loaded.themes["mine"].looks["dim"] == loaded.themes["dark"].looks["dim"]
    assert [problem.split(":")[0] for problem in loaded.problems] == [
        "theme binary.toml",
        "theme broken.toml",
        "theme folder.toml",
        "theme huge.toml",
    ]


def test_without_any_file_there_is_still_a_theme(tmp_path: Path) -> None:
    loaded = load_themes(shipped=tmp_path, user=tmp_path)
    assert list(loaded.themes) == ["mono"]
    assert set(loaded.themes["mono"].looks) == set(ROLES)
    assert set(plain().looks) == set(ROLES)
    assert loaded.problems
