"""A log of ratings with tables of users and items beside it, with and without names."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from contracts.config.config import Config, parse
from sluice.init.column_types import typed_columns
from sluice.init.config_text import config_text
from sluice.init.role_guess import Guess, guess
from sluice.init.side_tables import GLANCE, MOST_FILES, passed_over, tables_beside
from sluice.table_samples.table_sample import WHOLE_BYTES, read_sample

RANDOM = np.random.default_rng(0)
USERS, ITEMS, ROWS = 60, 90, 3000
GENRES = ("Action", "Drama", "Comedy", "War")


def looked_at(path: Path) -> tuple[Guess, Config]:
    sample = read_sample(path)
    found = guess(typed_columns(sample), None, tables_beside(path))
    return found, parse(config_text("made", sample, found))


def ratings(path: Path, header: str, by: str) -> Path:
    rows = (by.join(map(str, (row % USERS + 1, 1 + row % ITEMS, RANDOM.integers(1, 6), 880_000_000 + row * 6000)))
            for row in range(ROWS))
    path.write_text(header + "\n".join(rows) + "\n")
    return path


def named(folder: Path) -> Path:
    """As MovieLens of today: movies with genres, links that tell nothing."""
    movies = (f'{item},"Film, The ({item})",{GENRES[item % 4]}|{GENRES[item % 3]}' for item in range(1, ITEMS + 1))
    (folder / "movies.csv").write_text("movieId,title,genres\n" + "\n".join(movies) + "\n")
    links = (f"{item},{item * 7919 % 99991},{item * 104729 % 99991}" for item in range(1, ITEMS + 1))
    (folder / "links.csv").write_text("movieId,imdbId,tmdbId\n" + "\n".join(links) + "\n")
    (folder / "README.txt").write_text("A text, of words.\n" * 30)
    return ratings(folder / "ratings.csv", "userId,movieId,rating,timestamp\n", ",")


def nameless(folder: Path) -> Path:
    """As MovieLens of 1998: no header, flags for genres, a table of people."""
    flags = (f"{item}|Film {item} {item * 7919 % 9973}|0{1 + item % 9}-Jan-{1970 + item % 25}|" + "|".join(
        str(int(item % (flag + 2) == 0)) for flag in range(6)) for item in range(1, ITEMS + 1))
    (folder / "u.item").write_text("\n".join(flags) + "\n")
    people = (f"{user}|{20 + user % 50}|{'MF'[user % 2]}|{'abc'[user % 3]}" for user in range(1, USERS + 1))
    (folder / "u.user").write_text("\n".join(people) + "\n")
    return ratings(folder / "u.data", "", "\t")


def test_movies_with_genres_are_offered_joined(tmp_path: Path) -> None:
    found, config = looked_at(named(tmp_path))
    assert [table.beside.sample.path.name for table in found.tables] == ["movies.csv"]
    assert (config.items.key, config.items.path) == ("movieId", "{data}/movies.csv") if config.items else False
    fields = {field.name: (field.kind, field.side) for field in config.fields}
    assert fields["genres"] == ("multi_valued", "item")
    assert "title" in found.tables[0].left_out


def test_where_nothing_has_a_name_the_keys_tell(tmp_path: Path) -> None:
    _, config = looked_at(nameless(tmp_path))
    assert (config.log.user_id, config.log.item_id, config.label.expression) == ("user_id", "item_id", "c2 >= 4")
    assert config.users is not None
    assert config.items is not None
    assert (config.users.path, config.items.path) == ("{data}/u.user", "{data}/u.item")
    fields = {field.name: (field.kind, field.side) for field in config.fields}
    assert fields["item_flags"] == ("multi_valued", "item")
    assert fields["item_c2_year"] == ("numeric", "item")
    assert fields["user_c1"] == ("numeric", "user")
    assert fields["user_c2"] == ("categorical", "user")


@pytest.mark.parametrize("make", [named, nameless])
def test_users_items_and_times_bring_counters_a_sequence_and_groups(make, tmp_path: Path) -> None:
    _, config = looked_at(make(tmp_path))
    kinds = [(field.kind, field.side) for field in config.fields]
    assert {("counter", "item"), ("counter", "user"), ("sequence", "user")} <= set(kinds)
    assert all(field.windows[1] == 209 * 86_400 for field in config.fields if field.kind == "counter")
    assert (config.prerank_kind, config.crosses.budget) == ("towers", 0)  # of so few items and users


@pytest.mark.parametrize("known", [ITEMS, 50, 10])
def test_a_table_of_a_third_of_the_items_is_joined_and_one_of_fewer_told(known: int, tmp_path: Path) -> None:
    path = named(tmp_path)
    text = (tmp_path / "movies.csv").read_text().splitlines()
    (tmp_path / "movies.csv").write_text("\n".join(text[: known + 1]) + "\n")
    found, config = looked_at(path)
    if known * 3 < ITEMS:
        assert (found.tables, list(found.not_joined)) == ([], ["movies.csv"])
        assert found.not_joined["movies.csv"].startswith(f"it knows {known / ITEMS:.0%} of the log's movieId")
    else:
        assert config.items is not None
        told, said = found.tables[0].why, "and says nothing of the others"
        assert f"it knows {known / ITEMS:.0%} of the log's movieId" in told
        assert (said in told) is (known < ITEMS)


@pytest.mark.parametrize(("file", "step", "joined"), [
    ("movies.dat", 1, True), ("films.dat", 1, True), ("titles.dat", 1, False), ("titles.dat", 37, True)])
def test_without_names_a_table_of_more_items_is_joined_by_its_name_or_by_numbers_that_do_not_run(
    file: str, step: int, joined: bool, tmp_path: Path
) -> None:
    """Ratings of a few of its items alone, as a sample of a long log shows them."""
    path = ratings(tmp_path / "ratings.dat", "", "::")
    rows = (line.split("::") for line in path.read_text().splitlines())
    path.write_text("\n".join("::".join([user, f"{step * int(item):07}", *rest]) for user, item, *rest in rows) + "\n")
    movies = (f"{step * item:07}::Film {item} ({1950 + item % 60})::{GENRES[item % 4]}|{GENRES[item % 3]}"
              for item in range(1, 3 * ITEMS))
    (tmp_path / file).write_text("\n".join(movies) + "\n")
    found, config = looked_at(path)
    assert [table.beside.stem for table in found.tables] == ([file] if joined else [])
    assert (config.items is not None) is joined


def test_without_names_a_table_of_more_users_is_joined_by_its_name(tmp_path: Path) -> None:
    """Of a log in the order of its users a sample shows few of them."""
    path = nameless(tmp_path)
    people = (f"{user}|{20 + user % 50}|{'MF'[user % 2]}|{'abc'[user % 3]}" for user in range(1, 20 * USERS + 1))
    (tmp_path / "u.user").write_text("\n".join(people) + "\n")
    assert [table.beside.stem for table in looked_at(path)[0].tables] == ["u.user", "u.item"]


def test_another_number_of_each_user_is_no_field(tmp_path: Path) -> None:
    path = nameless(tmp_path)
    people = (f"{user}|{user * 104729 % 99991}|{'MF'[user % 2]}" for user in range(1, USERS + 1))
    (tmp_path / "u.user").write_text("\n".join(people) + "\n")
    found, _ = looked_at(path)
    assert [field.name for field in found.tables[0].fields] == ["user_c2"]
    assert "another name of c0" in found.tables[0].left_out["c1"]


@pytest.mark.slow
def test_without_names_a_table_of_half_the_keys_is_none(tmp_path: Path) -> None:
    path = nameless(tmp_path)
    text = (tmp_path / "u.item").read_text().splitlines()
    (tmp_path / "u.item").write_text("\n".join(text[: ITEMS // 2]) + "\n")
    assert [table.beside.stem for table in looked_at(path)[0].tables] == ["u.user"]


def test_damaged_and_foreign_files_beside_the_log_are_no_tables(tmp_path: Path) -> None:
    path = named(tmp_path)
    (tmp_path / "README.txt").unlink()
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(b'{"a": 18446744073709551616, "b": "\\ud83d"}\n'))
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:10] + b"\xff" * 20)
    assert [table.stem for table in tables_beside(path)] == ["links.csv", "movies.csv"]


def test_users_written_with_a_point_or_missing_now_and_then_have_their_table(tmp_path: Path) -> None:
    path = nameless(tmp_path)
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    written = (f"{user + '.0' if place % 9 else ''},{item},{rating},{time}"
               for place, (user, item, rating, time) in enumerate(rows))
    path.write_text("user_id,item_id,rating,time\n" + "\n".join(written) + "\n")
    people = (tmp_path / "u.user").read_text().replace("|", ",")
    (tmp_path / "u.user").unlink()
    (tmp_path / "people.csv").write_text("user_id,age,sex,kind\n" + people)
    found, config = looked_at(path)
    assert [table.stem for table in (one.beside for one in found.tables) if table.stem == "people.csv"]
    assert config.users is not None
    assert "regexp_replace(user_id" in config.log.derive["user_id"]


def test_another_log_beside_is_not_worth_reading(tmp_path: Path) -> None:
    path = named(tmp_path)
    (tmp_path / "links.csv").unlink()
    ratings(tmp_path / "ratings_of_may.csv", "userId,movieId,rating,timestamp\n", ",")
    heights = (f"{row % 7},{RANDOM.normal()}" for row in range(ROWS))
    (tmp_path / "heights.csv").write_text("kind,height\n" + "\n".join(heights) + "\n")
    assert [table.stem for table in tables_beside(path)] == ["movies.csv"]


def test_a_log_whose_users_repeat_in_the_whole_alone_is_none(tmp_path: Path) -> None:
    path = named(tmp_path)
    (tmp_path / "links.csv").unlink()
    rows, users = 5 * GLANCE, 3 * GLANCE  # of GLANCE rows four in five have a user of their own
    visits = (f"{user},{row % 7}" for row, user in enumerate(RANDOM.integers(0, users, rows)))
    (tmp_path / "visits.csv").write_text("visitor,day_of_week\n" + "\n".join(visits) + "\n")
    assert [table.stem for table in tables_beside(path)] == ["movies.csv"]


def test_files_that_are_not_looked_at_are_named(tmp_path: Path) -> None:
    path = named(tmp_path)
    (tmp_path / "README.txt").unlink()
    assert passed_over(path) == {}
    for number in range(MOST_FILES):
        (tmp_path / f"a{number:02d}.csv").write_text("kind,height\n" + "a,1.5\n" * 9)
    assert tables_beside(path) == []
    (name, why), = passed_over(path).items()
    assert name == "links.csv to movies.csv"
    assert f"2 of {MOST_FILES + 2} files" in why


def test_a_table_too_large_to_be_looked_at_is_told(tmp_path: Path) -> None:
    path = named(tmp_path)
    with (tmp_path / "users.csv").open("wb") as users:
        users.write(b"userId,age\n1,30\n")
        users.truncate(WHOLE_BYTES + (9 << 20))
    assert [table.stem for table in tables_beside(path)] == ["links.csv", "movies.csv"]
    (name, why), = passed_over(path).items()
    assert (name, why.split(";")[0]) == ("users.csv", "73 MiB")
    assert "write it as [users] or [items]" in why


def test_a_linked_log_has_the_tables_beside_the_link(tmp_path: Path) -> None:
    for place in ("kept", "here"):
        (tmp_path / place).mkdir()
    named(tmp_path / "here").rename(tmp_path / "kept" / "part-0")
    link = tmp_path / "here" / "ratings.csv"
    link.symlink_to(tmp_path / "kept" / "part-0")
    found, config = looked_at(link)
    assert [table.beside.sample.path.name for table in found.tables] == ["movies.csv"]
    assert (config.data, config.log.path) == (str(tmp_path / "here"), "{data}/ratings.csv")


@pytest.mark.parametrize(("again", "said"), [(0, False), (5, True), (ITEMS, False)])
def test_a_table_whose_keys_repeat_is_not_joined_and_why_is_said(tmp_path: Path, again: int, said: bool) -> None:
    path = named(tmp_path)
    with (tmp_path / "movies.csv").open("a") as movies:
        movies.write("".join(f"{item},Another,War\n" for item in range(1, again + 1)))
    (tmp_path / "links.csv").unlink()
    found, config = looked_at(path)
    assert (config.items is None) is (again > 0)
    assert list(found.not_joined) == (["movies.csv"] if said else [])
    if said:
        assert found.not_joined["movies.csv"].startswith("90 different movieId in 95 rows, and a table of items has a")
        text = config_text("made", read_sample(path), found)
        assert "# Not joined: movies.csv: 90 different movieId in 95 rows" in text


def impressions(folder: Path, delay: int, clicks: str = "clicks.csv", key: str = "shown_as") -> Path:
    """Every fifth of them with a click so many seconds later."""
    path, start = folder / "impressions.csv", 1_772_323_200
    path.write_text("shown_as,ts,user_id,item_id,slot\n" + "".join(
        f"s{row * 7919 % 99991},{start + 900 * row},u{row % 40},i{row % 37},{1 + row % 4}\n" for row in range(ROWS)))
    (folder / clicks).write_text(f"{key},clicked_at\n" + "".join(
        f"s{row * 7919 % 99991},{start + 900 * row + delay}\n" for row in range(0, ROWS, 5)))
    return path


@pytest.mark.parametrize(("delay", "window", "shortest"), [(60, 3600, 7 * 86_400), (7200, 86_400, 7 * 86_400)])
def test_clicks_in_a_table_of_their_own_are_the_label(
    delay: int, window: int, shortest: int, tmp_path: Path
) -> None:
    found, config = looked_at(impressions(tmp_path, delay))
    assert config.label.clicks is not None
    assert (config.label.expression, config.label.positives_only) == (None, False)
    assert (config.label.clicks.on, config.label.clicks.window) == (("shown_as",), window)
    assert config.label.clicks.derive == {"event_time": "timestamp_seconds(try_cast(clicked_at AS BIGINT))"}
    assert (config.log.position, found.label.rate, found.tables) == ("slot", 0.2, [])
    counters = [field for field in config.fields if field.kind == "counter"]
    assert min(length for field in counters for length in field.windows) == shortest


@pytest.mark.parametrize("other", [{"clicks": "visits.csv"}, {"key": "another"}])
def test_other_tables_are_no_clicks(other: dict[str, str], tmp_path: Path) -> None:
    assert looked_at(impressions(tmp_path, 60, **other))[1].label.positives_only


def test_a_label_by_name_comes_before_clicks_beside(tmp_path: Path) -> None:
    path = impressions(tmp_path, 60)
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([f"{header},clicked", *(f"{row},{place % 2}" for place, row in enumerate(rows))]))
    assert looked_at(path)[1].label.expression == "clicked = 1"
