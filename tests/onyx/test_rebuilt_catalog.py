"""A registration service loses its disk while its network runs, and has its catalog from the
brokers, as an operator says."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest
import trio

from onyx import DataSource, RegistrationClient, User, launch
from onyx.cli.main import main
from onyx.data_directory import DataDirectory
from onyx.errors import EXIT_OK, DataDirectoryInUse
from overlay.delivery_policy import DeliveryPolicy
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology as topology_in


async def test_users_and_sources_go_on_and_no_id_is_given_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    with trio.fail_after(SAFETY_SECONDS):
        async with launch(topology_in(data, brokers=2)) as network:
            source = await DataSource.register(network.registration, name="weather")
            async with source, User(network.registration, "ada") as user:
                policy = DeliveryPolicy(deliveries_max=1000)
                profile = await user.add_profile("//n", policy=policy)
                gone = await user.add_profile("//gone")
                await user.remove_profile(gone.id)
                results = user.results(profile.id)

                async def publish_and_take(number: int) -> None:
                    assert (await source.publish(f"<n>{number}</n>".encode())).number == number
                    assert (await anext(results)).number == number

                await publish_and_take(1)
                shutil.rmtree(DataDirectory(data).node_directory("registration"))
                network.kill("registration")
                await publish_and_take(2)
                rebuild = ["store", "rebuild", str(data)]
                code = 75
                while code == DataDirectoryInUse.exit_code:  # it tries once more, just now
                    code = await trio.to_thread.run_sync(partial(main, rebuild))
                assert code == EXIT_OK
                said = capsys.readouterr().out
                assert "from B1, B2: 1 profiles, 1 sources, 0 moves" in said
                await publish_and_take(3)
                async with RegistrationClient(network.registration) as registration:
                    (listed,) = await registration.profiles()
                    assert (listed.id, listed.user, listed.live) == (profile.id, "ada", 1)
                    assert [each.id for each in await registration.sources()] == [source.id]
                other = await user.add_profile("//n[. = 4]")
                numbers = [int(each.id[1:].partition("-")[0]) for each in (profile, gone, other)]
                assert numbers == [1, 2, 3]
                await publish_and_take(4)
                assert (await anext(user.results(other.id))).number == 4
                await user.remove_profile(profile.id)
