"""``onyx access`` and ``onyx audit`` against a running network, as an operator and as users."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from onyx.blocking import DataSource, User
from onyx.cli import asking
from onyx.cli.main import main
from onyx.errors import NotAuthenticated, RequestFailed
from onyx.identity.known_networks import use_credentials
from overlay.answers import RuleChanged
from overlay.link.principal import Principal
from tests.issuer import token
from tests.onyx.networks import RunningProcess, small_topology_text
from tests.onyx.test_cli_network import Shell, shell, write
from tests.onyx.test_stranger import authority_of, issued

__all__ = ["shell"]


class People:
    """Who has a certificate of the network."""

    def __init__(self, network: RunningProcess, directory: Path) -> None:
        self._authority = authority_of(network)
        self._directory = directory

    @contextmanager
    def as_user(self, name: str, role: str = "user") -> Iterator[Path]:
        place = self._directory / name
        place.mkdir(exist_ok=True)
        path = issued(self._authority, Principal(role, name), place)
        with use_credentials(path):
            yield path


@pytest.fixture
def people(network: RunningProcess, tmp_path: Path) -> People:
    return People(network, tmp_path)


def test_a_user_has_profiles_of_their_own_and_nothing_else(
    people: People, registration: str
) -> None:
    with people.as_user("amy"), User(registration) as amy:
        profile = amy.add_profile("//amy")
        assert profile.user == "amy"
        with people.as_user("ben"), User(registration) as ben:
            assert ben.profiles() == []
            for what in (
                lambda: ben.update_profile(profile.id, "//ben"),
                lambda: ben.remove_profile(profile.id),
                lambda: next(iter(ben.results(profile.id))),
            ):
                with pytest.raises(RequestFailed, match="not-authorised"):
                    what()
        assert [shown.id for shown in amy.profiles()] == [profile.id]
        amy.remove_profile(profile.id)


def test_a_source_publishes_as_what_it_registered_and_who_was_granted_too(
    people: People, registration: str, shell: Shell
) -> None:
    with people.as_user("wire", "source"):
        source = DataSource.register(registration, name="own", key="own")
        with source:
            assert source.publish(b"<own/>").accepted
    with (
        people.as_user("eve"),
        pytest.raises(RequestFailed, match="not-authorised"),
        DataSource(registration, source.id),
    ):
        pass
    grant = ("user/eve", "publish", source.id)
    assert shell.lines("access", "grant", *grant) == [f"{' '.join(grant)}: granted"]
    with people.as_user("eve"), DataSource(registration, source.id) as borrowed:
        assert borrowed.publish(b"<own/>").accepted
    assert shell.lines("access", "revoke", *grant) == [f"{' '.join(grant)}: revoked"]
    assert shell.lines("access", "revoke", *grant) == [f"{' '.join(grant)}: nothing to do"]
    listed = shell.objects("audit", "list")  # certificates are in it too, within a second
    about = [(each["what"], each["detail"]) for each in listed if source.id in each["detail"]]
    changes = [each for each in about if each[0].startswith("access.")]
    assert changes == [(f"access.{done}", " ".join(grant)) for done in ("grant", "revoke")]


def test_operators_verbs_need_an_operator(
    people: People, shell: Shell, tmp_path: Path, registration: str
) -> None:
    file = write(tmp_path / "t.toml", small_topology_text(tmp_path))
    shell.lines("access", "list")
    with people.as_user("eve") as credentials:
        for words in (
            ("access", "list"),
            ("access", "grant", "user/eve", "admin"),
            ("audit", "list"),
            ("status",),
            ("top", "--once"),
            ("plan", "status"),
            ("dead", "list", "--user", "ann"),
            ("broker", "drain", "B1"),
            ("broker", "lost", "B1"),
            ("topology", "apply", file),
        ):
            code = shell.run(*words, "--credentials", credentials)
            assert (code, "not-authorised" in shell.err) == (77, True), (words, shell.err)
        assert shell.run("doctor", "--credentials", credentials) == 1
        (refused,) = [line for line in shell.out.splitlines() if "may not operate" in line]
        assert refused.startswith("PROBLEM  registration service: ")
    assert not [rule for rule in shell.objects("access", "list") if rule["principal"] == "user/eve"]


def test_a_token_of_an_issuer_is_a_user_and_is_renewed_in_its_file(
    shell: Shell, registration: str, tmp_path: Path
) -> None:
    shown, file = tmp_path / "tim.jwt", tmp_path / "tim.token"
    shown.write_text(token(sub="tim"), encoding="ascii")
    shell.lines("token", "oidc", "user/tim", "--jwt", shown, "--out", file)
    assert file.stat().st_mode & 0o777 == 0o600
    with use_credentials(file):
        with User(registration) as tim:
            profile = tim.add_profile("//tim")
            assert profile.user == "tim"
            with use_credentials(None), DataSource.register(registration) as source:
                assert source.publish(b"<tim/>").accepted
                assert next(tim.results(profile.id)).results == [b"<tim/>"]
        shown.write_text(token(sub="tim", exp=1), encoding="ascii")
        with pytest.raises(RequestFailed, match="expired"), User(registration) as tim:
            tim.profiles()
        shown.write_text(token("edwards", sub="tim"), encoding="ascii")
        with User(registration) as tim:
            tim.remove_profile(profile.id)
        shown.write_text("no token", encoding="ascii")
        with pytest.raises(NotAuthenticated, match="expected a token"), User(registration) as tim:
            tim.profiles()


def test_a_token_is_a_user_without_a_certificate(
    shell: Shell, registration: str, tmp_path: Path
) -> None:
    file = tmp_path / "tom.token"
    (name,) = shell.lines("token", "issue", "user/tom", "--out", file)
    assert file.stat().st_mode & 0o777 == 0o600
    with use_credentials(file), User(registration) as tom:
        profile = tom.add_profile("//tom")
        assert profile.user == "tom"
        with use_credentials(None), DataSource.register(registration, name="toms") as source:
            assert source.publish(b"<tom/>").accepted
            assert next(tom.results(profile.id)).results == [b"<tom/>"]
            assert shell.lines("token", "revoke", name) == [f"{name} is revoked"]
    with (
        use_credentials(file),
        pytest.raises(RequestFailed, match="not authenticated"),
        User(registration) as tom,
    ):
        tom.profiles()
    assert not [t for t in shell.objects("token", "list") if t["token"] == name]
    (changed,) = [e for e in shell.objects("audit", "list") if e["what"] == "token.revoke"]
    assert changed["detail"] == f"{name} of user/tom"


def test_a_service_of_a_former_release_leaves_the_words_to_the_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its answer to a grant has ``changed`` alone."""

    async def ask(arguments: object, asked: object) -> RuleChanged:
        return RuleChanged.of({"changed": True})

    monkeypatch.setattr(asking, "ask", ask)
    words = ["access", "grant", "user/ann", "subscribe", "s1", "--registration", "here:1"]
    assert main(words) == main([*words, "--json"]) == 0
    text, line = capsys.readouterr().out.splitlines()
    assert text == "user/ann subscribe s1: granted"
    rule = {"principal": "user/ann", "role": "subscribe", "scope": "s1"}
    assert json.loads(line) == {**rule, "changed": True}
