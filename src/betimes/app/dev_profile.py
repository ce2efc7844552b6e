"""The profile of `betimes dev`: so that commands and apps beside it need to be told nothing."""

from betimes.domain.errors import BadSetting
from betimes.sdk import profiles

NAME = "dev"


def kept_profile(url: str, key: str) -> str:
    """Keep address and key under the name `dev`; what to say of it.

    It counts when none is named only where there is no other profile: nobody is led away from the
    service that they have signed in to.
    """
    try:
        place = profiles.place()
        known = profiles.read(place)
        known.by_name[NAME] = {**known.by_name.get(NAME, {}), "url": url, "api_key": key}
        if known.current not in known.by_name:
            known.current = NAME
        profiles.write(place, known)
    except (BadSetting, OSError) as fault:
        return f"no profile was kept ({fault}): set BETIMES_API_KEY for commands and apps"
    if known.current == NAME:
        return "commands and apps of this user find both by the profile dev"
    return f"commands find both by --profile {NAME}, apps by BETIMES_PROFILE={NAME}"
