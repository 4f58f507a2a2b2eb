"""Mutants of object stores by name: which server a bookie is on, and what a name may mean."""

from .change import DropArgument, Replace
from .mutant import Mutant

SERVERS = "tests/unit/storage/s3/test_stores.py"
FILE = "tests/unit/storage/test_stores.py"
SHOWN = "tests/unit/storage/test_shown.py"
SMALL = "tests/unit/format/test_small_records.py"
TWO_SERVERS = f"{SERVERS}::test_one_cluster_uses_two_servers"
TWO_PLACES = f"{SERVERS}::test_equal_addresses_on_two_servers_are_two_places"
TWO_NAMES = f"{SERVERS}::test_two_names_of_a_server_are_one_place_and_one_domain"
NOT_KNOWN = f"{SERVERS}::test_a_store_that_this_machine_does_not_know_makes_its_bookies_unavailable"
COMMANDS = f"{SERVERS}::test_commands_for_a_bookie_use_its_store"
MISTAKES = f"{FILE}::test_a_mistake_in_the_file_is_told_in_one_line"

MUTANTS = (
    Mutant(
        "a bookie's record may name any store",
        "format.cluster._store",
        Replace("name and require_store_name(name)", "name"),
        (f"{SMALL}::test_a_store_that_has_no_name_is_damage",),
    ),
    Mutant(
        "a request goes to the default store",
        "S3Objects.__init__",
        Replace("place.store", "''"),
        (TWO_SERVERS, TWO_PLACES),
    ),
    Mutant(
        "a bookie is looked for in the default store",
        "BucketBookieRoot.__init__",
        Replace("parse(address.place)", "parse(address.url)"),
        (TWO_SERVERS, NOT_KNOWN),
    ),
    Mutant(
        "a store that is not known here is a mistake of the reader",
        "connection._settings_of",
        Replace("StoreDoubt(str(error.args[0]), hint=error.hint)", "error"),
        (NOT_KNOWN, f"{FILE}::test_a_store_that_is_not_known_is_a_doubt_to_a_request"),
    ),
    Mutant(
        "a named store takes the endpoint of the environment",
        "connection._settings_of",
        Replace("{'ignore_configured_endpoint_urls': True}", "{}"),
        (f"{FILE}::test_a_named_store_takes_no_endpoint_and_no_key_of_the_process",),
    ),
    Mutant(
        "a named store takes the keys of fsspec's configuration",
        "connection._settings_of",
        Replace("('key', 'secret', 'token', 'username', 'password', 'session')", "()"),
        (f"{FILE}::test_a_named_store_takes_no_endpoint_and_no_key_of_the_process",),
    ),
    Mutant(
        "a connection that is being made stops those to all other stores",
        "storage.clients.Clients.of",
        Replace(
            "self._making.setdefault(name, threading.Lock())",
            "self._making.setdefault(('', ''), threading.Lock())",
        ),
        (f"{FILE}::test_a_connection_that_hangs_stops_no_other",),
    ),
    Mutant(
        "equal addresses on two servers are one place",
        "admission._are_in_one_store",
        Replace(
            "is_named_alike or open_objects(one).server() == open_objects(two).server()",
            "True",
        ),
        (TWO_PLACES,),
    ),
    Mutant(
        "a server is two servers by two names",
        "admission._are_in_one_store",
        Replace(
            "is_named_alike or open_objects(one).server() == open_objects(two).server()",
            "is_named_alike",
        ),
        (TWO_NAMES,),
    ),
    Mutant(
        "buckets of one name are one failure domain",
        "BucketStorage.failure_domain",
        Replace("f'@{name}' if server else ''", "''"),
        (TWO_SERVERS, TWO_NAMES),
    ),
    Mutant(
        "a busy store slows the bucket of that name in each store",
        "Pressures.of",
        Replace("self._of.get((store, bucket))", "self._of.get(('', bucket))"),
        (f"{SERVERS}::test_a_store_that_is_busy_slows_no_other",),
    ),
    Mutant(
        "a bookie is declared lost that answers in its store",
        "absent_bookies._answers",
        Replace(
            "replace(record, incarnation=member.incarnation)",
            "replace(record, incarnation=member.incarnation, store='')",
        ),
        (COMMANDS,),
    ),
    Mutant(
        "a bookie that moves stays in its store",
        "moving._store",
        DropArgument("store"),
        (COMMANDS,),
    ),
    Mutant(
        "a record that is made again is in no store",
        "restored_bookie",
        DropArgument("store"),
        (f"{SERVERS}::test_a_record_is_made_again_from_a_cookie_in_its_store",),
    ),
    Mutant(
        "a metadata store is asked before this machine knows where it is",
        "BucketMetadataStore._directory",
        Replace("require_known(self._objects.place.store)", "None"),
        (f"{SERVERS}::test_metadata_may_be_in_a_named_store",),
    ),
    Mutant(
        "any query of an address is shown",
        "shown_url",
        Replace("_STORE.fullmatch(rest) and place != HIDDEN", "rest"),
        (f"{SHOWN}::test_what_may_be_secret_is_hidden",),
    ),
    Mutant(
        "a secret in the file of stores is like any unknown setting",
        "stores._require_setting",
        Replace("_SECRET.search(setting)", "False"),
        (MISTAKES,),
    ),
    Mutant(
        "a file of stores may have settings that nothing reads",
        "stores._require_setting",
        Replace("setting in _SETTINGS", "not _SECRET.search(setting)"),
        (MISTAKES,),
    ),
    Mutant(
        "an endpoint may have a password in it",
        "stores._require_endpoint",
        Replace("'@' in url or parts.query or parts.fragment", "False"),
        (MISTAKES,),
    ),
    Mutant(
        "each endpoint of AWS is a server of its own",
        "stores.place_of",
        Replace("if aws:\n    ...", "if False:\n    return ''"),
        (f"{FILE}::test_an_endpoint_has_one_spelling",),
    ),
)
