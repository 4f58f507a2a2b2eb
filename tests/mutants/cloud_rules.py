"""Mutants of what Google's and Microsoft's stores are asked, and of what answers are taken for."""

from .change import Drop, Replace
from .mutant import Mutant

FILE = "tests/unit/storage/test_clouds.py"
GOOGLE = f"{FILE}::TestGoogle"
TAKEN_FOR = f"{GOOGLE}::test_what_an_answer_is_taken_for"
AZURE = f"{FILE}::test_what_an_answer_of_azure_is_taken_for"
LISTING = f"{GOOGLE}::test_a_server_that_does_not_say_what_is_missing_is_asked_for_a_listing"
ADDRESSES = f"{FILE}::TestAddresses"

MUTANTS = (
    Mutant(
        "an object in Google's store replaces any other",
        "GoogleObjects.put",
        Replace("{'uploadType': 'multipart', 'ifGenerationMatch': replaced or '0'}", "{}"),
        (f"{GOOGLE}::test_a_put_has_the_generation_that_it_replaces",),
    ),
    Mutant(
        "a large object in Google's store replaces any other",
        "GoogleObjects.begin",
        Replace(
            "{'uploadType': 'resumable', 'name': key, 'ifGenerationMatch': '0'}",
            "{'uploadType': 'resumable', 'name': key}",
        ),
        (f"{GOOGLE}::test_a_part_is_whole_and_the_end_tells_its_size",),
    ),
    Mutant(
        "a bucket of Google that is gone is an object that is absent",
        "GoogleObjects._require_object",
        Replace("answer.code != 'NoSuchBucket'", "True"),
        (f"{TAKEN_FOR}[404-<Error><Code>NoSuchBucket</Code></Error>-StoreDoubt]",),
    ),
    Mutant(
        "a server that does not say what is missing is believed",
        "GoogleObjects._require_object",
        Replace("answer.code == 'NoSuchKey' or self._is_unlisted(key)", "True"),
        (f"{LISTING}[listing2-StoreDoubt]", f"{LISTING}[listing3-StoreDoubt]"),
    ),
    Mutant(
        "the object before a longer name is absent",
        "GoogleObjects._is_unlisted",
        Replace("entry.get('name') != key", "True"),
        (f"{LISTING}[listing2-StoreDoubt]",),
    ),
    Mutant(
        "an answer of Google that was cut short is whole",
        "google._ask",
        Replace("length is not None and len(found) != int(length)", "False"),
        (f"{GOOGLE}::test_an_answer_that_is_not_whole_is_a_doubt",),
    ),
    Mutant(
        "a part of which the store has the half is sent",
        "GoogleParts.send",
        Replace(
            "answer.status == 308 and answer.headers.get('Range') != f'bytes=0-{end - 1}'", "False"
        ),
        (f"{GOOGLE}::test_a_part_is_whole_and_the_end_tells_its_size",),
    ),
    Mutant(
        "an object of another size is the one that was sent",
        "GoogleParts.finish",
        Replace("str(made.get('size')) != str(size)", "False"),
        (f"{GOOGLE}::test_a_part_is_whole_and_the_end_tells_its_size",),
    ),
    Mutant(
        "a conflict in Google's store is a lost race",
        "google._meaning",
        Replace("case 412: ...", "case 409 | 412: ..."),
        (f"{TAKEN_FOR}[409--StoreDoubt]",),
    ),
    Mutant(
        "a container that is gone is an object that is absent",
        "azure_blobs._meaning",
        Replace(
            "case [404, 'BlobNotFound']: ...",
            "case [404, 'BlobNotFound' | 'ContainerNotFound']: ...",
        ),
        (f"{AZURE}[404-ContainerNotFound-StoreDoubt]",),
    ),
    Mutant(
        "any conflict in Azure is a lost race",
        "azure_blobs._meaning",
        Replace("code in _TAKEN", "True"),
        (
            f"{AZURE}[409-ContainerBeingDeleted-StoreDoubt]",
            f"{AZURE}[412-LeaseIdMissing-StoreDoubt]",
        ),
    ),
    Mutant(
        "a key of one account is used for another",
        "azure_blobs._account_of",
        Replace("given.get('AccountName', account) != account", "False"),
        (f"{FILE}::TestCredentials::test_a_connection_string_is_of_its_account",),
    ),
    Mutant(
        "a forked process uses the clients of its parent",
        "Clients.forked",
        Drop("self.begin"),
        (f"{FILE}::test_a_forked_process_makes_its_own_clients",),
    ),
    Mutant(
        "each spelling of a scheme is another place",
        "address.canonical",
        Replace("_SAME.get(scheme, scheme)", "scheme"),
        (f"{ADDRESSES}::test_spellings[s3a://bucket/a-s3://bucket/a]",),
    ),
)
