"""Objects in S3, of which each answer is scripted: an answer that is not sure is a doubt."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.storage.address import parse
from bkspark.storage.connection import NoSuchObject, StoreDoubt
from bkspark.storage.objects import (
    EMPTY,
    PART_BYTES,
    PARTS_AT_ONCE,
    Objects,
    Upload,
    make_sentinel,
    require_conditional_creates,
)

from .stand_in import (
    ANSWER_LOST,
    BUSY,
    CONFLICT,
    ERROR,
    ERROR_BEHIND_IT,
    REQUEST_LOST,
    Fate,
    Refused,
    S3Store,
)

NAME = "name"
KEY = f"place/{NAME}"
MANY = 10_000

DONE = {"lost answer": ANSWER_LOST, "500 behind it": ERROR_BEHIND_IT}
NOT_DONE = {
    "lost request": REQUEST_LOST,
    "500": ERROR,
    "503": BUSY,
    "409": CONFLICT,
    "504": Fate(504, "GatewayTimeout"),
}
FINAL = {
    "403": Fate(403, "AccessDenied"),
    "400": Fate(400, "ExpiredToken"),
    "301": Fate(301, "PermanentRedirect"),
    "404": Fate(404, "NotFound"),
    "no bucket": Fate(404, "NoSuchBucket"),
}


def puts(s3: S3Store) -> int:
    return s3.requests.count(f"put_object {KEY}")


def theirs(objects: Objects, data: bytes = b"mine") -> Callable[[], object]:
    """Another client creates the object, with the very same bytes."""
    return lambda: Objects(objects.place).create(NAME, data)


class TestCreate:
    """One request makes an object, and its token tells whose it is."""

    def test_it_is_one_request(self, s3: S3Store, objects: Objects) -> None:
        created = objects.create(NAME, b"mine")
        assert created is not None
        assert s3.requests == [f"put_object {KEY}"]
        assert objects.read(NAME).is_by(created)

    @pytest.mark.parametrize("once", [False, True])
    @pytest.mark.parametrize("fate", DONE)
    def test_a_lost_answer_is_settled_by_a_look(
        self, s3: S3Store, objects: Objects, fate: str, once: bool
    ) -> None:
        s3.script("put_object", DONE[fate])
        created = objects.create(NAME, b"mine", once=once)
        assert created is not None
        assert created.etag == s3.objects[KEY].etag
        assert puts(s3) == (1 if once else 2)

    @pytest.mark.parametrize("fate", NOT_DONE)
    def test_what_passes_is_sent_again(self, s3: S3Store, objects: Objects, fate: str) -> None:
        s3.script("put_object", NOT_DONE[fate], NOT_DONE[fate])
        assert objects.create(NAME, b"mine") is not None
        assert puts(s3) == 3

    @pytest.mark.parametrize("fate", NOT_DONE)
    def test_what_is_sent_once_stays_in_doubt(
        self, s3: S3Store, objects: Objects, fate: str
    ) -> None:
        s3.script("put_object", NOT_DONE[fate])
        with pytest.raises(StoreDoubt):
            objects.create(NAME, b"mine", once=True)
        assert puts(s3) == 1
        assert KEY not in s3.objects

    @pytest.mark.parametrize("fate", {**NOT_DONE, **FINAL})
    def test_what_lasts_is_a_doubt_and_never_somebody_else_s(
        self, s3: S3Store, objects: Objects, fate: str
    ) -> None:
        s3.script("put_object", *[{**NOT_DONE, **FINAL}[fate]] * MANY)
        with pytest.raises(StoreDoubt) as caught:
            objects.create(NAME, b"mine")
        assert str({**NOT_DONE, **FINAL}[fate].code) in str(caught.value)
        assert 1 <= puts(s3) < 20
        assert (puts(s3) == 1) == (fate in FINAL)

    @pytest.mark.parametrize("fate", {**NOT_DONE, **FINAL})
    def test_the_object_of_another_is_a_sure_answer(
        self, s3: S3Store, objects: Objects, fate: str
    ) -> None:
        """Of the same bytes, and though the own request was never answered."""
        theirs(objects)()
        s3.script("put_object", *[{**NOT_DONE, **FINAL}[fate]] * MANY)
        assert objects.create(NAME, b"mine") is None

    @pytest.mark.parametrize("once", [False, True])
    def test_a_race_has_one_winner(self, s3: S3Store, objects: Objects, once: bool) -> None:
        s3.script("put_object", theirs(objects))
        assert objects.create(NAME, b"mine", once=once) is None

    def test_a_look_that_fails_leaves_the_doubt_of_the_request(
        self, s3: S3Store, objects: Objects
    ) -> None:
        s3.script("put_object", Fate(403, "AccessDenied", done=True))
        s3.script("get_object", *[ERROR] * MANY)
        with pytest.raises(StoreDoubt, match="AccessDenied"):
            objects.create(NAME, b"mine")

    def test_a_name_that_was_taken_and_is_free_again_is_a_doubt(
        self, s3: S3Store, objects: Objects
    ) -> None:
        s3.script("put_object", Fate(412, "PreconditionFailed"))
        with pytest.raises(StoreDoubt, match="free again"):
            objects.create(NAME, b"mine")

    def test_contents_that_look_like_a_sentinel_are_refused(
        self, s3: S3Store, objects: Objects
    ) -> None:
        for sentinel in (EMPTY, make_sentinel("journal")):
            with pytest.raises(InvalidRequestError):
                objects.create(NAME, sentinel)
        assert s3.requests == []


class TestLooks:
    """Absent is what the store says with NoSuchKey, and nothing else."""

    LOOKS = (
        lambda objects: objects.read(NAME),
        lambda objects: objects.read(NAME, 3, 4),
        lambda objects: objects.look(NAME),
    )

    @pytest.mark.parametrize("look", LOOKS)
    def test_absent(self, s3: S3Store, objects: Objects, look: Callable[[Objects], object]) -> None:
        assert look(objects) is None

    @pytest.mark.parametrize("fate", {**NOT_DONE, **FINAL})
    @pytest.mark.parametrize("look", LOOKS)
    def test_no_other_answer_is_an_absence(
        self, s3: S3Store, objects: Objects, look: Callable[[Objects], object], fate: str
    ) -> None:
        s3.script("get_object", *[{**NOT_DONE, **FINAL}[fate]] * MANY)
        with pytest.raises(StoreDoubt) as caught:
            look(objects)
        assert not isinstance(caught.value, NoSuchObject)

    @pytest.mark.parametrize("fate", {**NOT_DONE, "cut short": Fate(cut=1)})
    def test_a_look_is_sent_again(self, s3: S3Store, objects: Objects, fate: str) -> None:
        objects.create(NAME, b"0123456789")
        s3.script("get_object", {**NOT_DONE, "cut short": Fate(cut=1)}[fate])
        assert objects.read(NAME).data == b"0123456789"
        s3.script("get_object", {**NOT_DONE, "cut short": Fate(cut=1)}[fate])
        found = objects.read(NAME, 3, 4)
        assert (found.data, found.size) == (b"3456", 10)

    def test_ranges(self, s3: S3Store, objects: Objects) -> None:
        objects.create(NAME, b"0123456789")
        for begin, length, data in ((0, 0, b""), (8, 5, b"89"), (10, 1, b""), (20, 1, b"")):
            found = objects.read(NAME, begin, length)
            assert (found.data, found.size) == (data, 10)

    @pytest.mark.parametrize("data", [b"", b"0123456789abcdef"])
    def test_sixteen_bytes_may_be_a_sentinel(
        self, s3: S3Store, objects: Objects, data: bytes
    ) -> None:
        objects.create(NAME, data)
        assert len(s3.objects[KEY].data) == 16
        for begin, length in ((0, None), (0, 1), (3, 4)):
            found = objects.read(NAME, begin, length)
            end = None if length is None else begin + length
            assert (found.data, found.size) == (data[begin:end], len(data))

    def test_a_store_that_ignores_ranges_is_a_doubt(
        self, s3: S3Store, objects: Objects, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        objects.create(NAME, b"0123456789")
        whole = s3._get_object
        monkeypatch.setattr(s3, "_get_object", lambda *, Key, Range="": whole(Key=Key))
        with pytest.raises(StoreDoubt, match="range"):
            objects.read(NAME, 3, 4)

    def test_a_listing_is_read_to_its_end(self, s3: S3Store, objects: Objects) -> None:
        for name in ("f/a", "f/b", "f/c/d", "f/c/e", "f/g", "h"):
            objects.create(name, b"x")
        s3.objects["place/f/"] = s3.objects["place/h"]  # as some consoles make
        s3.page_length = 2
        s3.script("list_objects_v2", Fate(), BUSY, Fate())
        assert sorted(objects.entries("f")) == ["a", "b", "c/", "g"]
        assert objects.stored_sizes("f") == {"a": 1, "b": 1, "g": 1}
        s3.script("list_objects_v2", *[ERROR] * MANY)
        with pytest.raises(StoreDoubt):
            objects.entries("f")

    def test_what_is_gone_can_be_deleted(
        self, s3: S3Store, objects: Objects, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        objects.create(NAME, b"x")
        s3.script("delete_object", ANSWER_LOST)
        objects.delete(NAME)
        assert s3.objects == {}
        s3.script("delete_object", Fate(404, "NoSuchKey"))
        objects.delete(NAME)
        s3.script("delete_object", Fate(403, "AccessDenied"))
        with pytest.raises(StoreDoubt):
            objects.delete(NAME)


class TestUpload:
    """A large object appears whole, and if absent only."""

    @pytest.fixture
    def upload(self, s3: S3Store, objects: Objects) -> Upload:
        upload = Upload(objects, NAME)
        upload.send(b"first ")
        upload.write(b"second")
        return upload

    def test_it_appears_whole(self, s3: S3Store, objects: Objects, upload: Upload) -> None:
        assert objects.look(NAME) is None
        created = upload.finish()
        assert created is not None
        found = objects.read(NAME)
        assert found.data == b"first second"
        assert found.is_by(created)
        assert s3.uploads == {}

    @pytest.mark.parametrize("fate", DONE)
    def test_a_lost_answer_is_settled_by_a_look(
        self, s3: S3Store, objects: Objects, upload: Upload, fate: str
    ) -> None:
        """Sent again it is told that there is no such upload, which says nothing of the object."""
        s3.script("complete_multipart_upload", DONE[fate])
        created = upload.finish()
        assert objects.read(NAME).is_by(created)

    @pytest.mark.parametrize("fate", {**NOT_DONE, **FINAL})
    def test_what_lasts_is_a_doubt(self, s3: S3Store, upload: Upload, fate: str) -> None:
        s3.script("complete_multipart_upload", *[{**NOT_DONE, **FINAL}[fate]] * MANY)
        with pytest.raises(StoreDoubt):
            upload.finish()
        assert KEY not in s3.objects

    def test_the_object_of_another_stays(
        self, s3: S3Store, objects: Objects, upload: Upload
    ) -> None:
        s3.script("complete_multipart_upload", theirs(objects, b"theirs"))
        assert upload.finish() is None
        assert objects.read(NAME).data == b"theirs"
        upload.discard()
        assert s3.uploads == {}

    def test_it_is_begun_once_in_doubt(self, s3: S3Store, objects: Objects) -> None:
        """A second one would stay behind, paid for and unseen."""
        s3.script("create_multipart_upload", BUSY, ANSWER_LOST)
        with pytest.raises(StoreDoubt):
            Upload(objects, NAME).send(b"x")
        assert len(s3.uploads) == 1

    def test_a_part_is_sent_again(self, s3: S3Store, objects: Objects, upload: Upload) -> None:
        s3.script("upload_part", ANSWER_LOST, ERROR, BUSY)
        upload.finish()
        assert objects.read(NAME).data == b"first second"

    def test_it_leaves_nothing_behind(self, s3: S3Store, upload: Upload) -> None:
        upload.discard()
        upload.discard()
        assert (s3.uploads, s3.objects) == ({}, {})

    def test_parts_are_cut(self, s3: S3Store, objects: Objects) -> None:
        upload = Upload(objects, NAME)
        data = bytes(range(256)) * (4 * PART_BYTES // 256) + b"x"
        upload.write(data)
        sent = next(iter(s3.uploads.values())).parts
        assert [len(sent[number]) for number in sorted(sent)] == [PART_BYTES] * PARTS_AT_ONCE
        assert upload.finish() is not None
        assert objects.read(NAME).data == data

    def test_parts_go_side_by_side(
        self, s3: S3Store, objects: Objects, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each waits for the others; one after the other, the first would wait in vain."""
        together, real = threading.Barrier(PARTS_AT_ONCE), s3._upload_part

        def waits(**given: Any) -> object:
            together.wait(60)
            return real(**given)

        monkeypatch.setattr(s3, "_upload_part", waits)
        upload = Upload(objects, NAME)
        upload.send(b"one ", b"two ", b"three")
        upload.finish()
        assert objects.read(NAME).data == b"one two three"

    def test_a_part_that_lasts_in_doubt_ends_the_write(self, s3: S3Store, objects: Objects) -> None:
        s3.script("upload_part", *[ERROR] * MANY)
        upload = Upload(objects, NAME)
        with pytest.raises(StoreDoubt):
            upload.send(b"one", b"two", b"three")
        upload.discard()
        assert (s3.uploads, s3.objects) == ({}, {})

    def test_few_parts_are_in_memory(self, s3: S3Store, objects: Objects) -> None:
        upload = Upload(objects, NAME)
        for _ in range(10 * 2**20 // 2**18 * 4):
            upload.write(bytes(2**18))
            assert len(upload._rest) <= PARTS_AT_ONCE * PART_BYTES

    @pytest.mark.parametrize(("sent", "at_once"), [(0, 3), (999, 3), (1000, 1), (9000, 1)])
    def test_longer_parts_go_one_by_one(self, objects: Objects, sent: int, at_once: int) -> None:
        upload = Upload(objects, NAME)
        upload._sent = sent
        assert upload._at_once() == at_once


class TestProbe:
    """A store that does not do what is needed is refused."""

    def test_one_that_does(self, s3: S3Store, objects: Objects) -> None:
        require_conditional_creates(objects)
        assert (s3.objects, s3.uploads) == ({}, {})

    @pytest.mark.parametrize("method", ["_put_object", "_complete_multipart_upload"])
    def test_one_that_ignores_conditions(
        self, s3: S3Store, objects: Objects, monkeypatch: pytest.MonkeyPatch, method: str
    ) -> None:
        real = getattr(s3, method)
        monkeypatch.setattr(s3, method, lambda **given: real(**given | {"IfNoneMatch": ""}))
        with pytest.raises(InvalidRequestError, match="overwrites objects"):
            require_conditional_creates(objects)
        assert s3.objects == {}

    def test_one_that_looks_only_when_an_upload_begins(
        self, s3: S3Store, objects: Objects, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begin, end = s3._create_multipart_upload, s3._complete_multipart_upload

        def refuse_if_taken(**given: str) -> object:
            if given["Key"] in s3.objects:
                raise Refused(412, "PreconditionFailed")
            return begin(**given)

        monkeypatch.setattr(s3, "_create_multipart_upload", refuse_if_taken)
        monkeypatch.setattr(
            s3, "_complete_multipart_upload", lambda **given: end(**given | {"IfNoneMatch": ""})
        )
        with pytest.raises(InvalidRequestError, match="overwrites objects"):
            require_conditional_creates(objects)

    @pytest.mark.parametrize("status", [400, 501])
    def test_one_that_does_not_know_them(
        self, s3: S3Store, objects: Objects, monkeypatch: pytest.MonkeyPatch, status: int
    ) -> None:
        def refuse(**_given: object) -> None:
            raise Refused(status, "NotImplemented")

        monkeypatch.setattr(s3, "_put_object", refuse)
        with pytest.raises(StoreDoubt, match="NotImplemented"):
            require_conditional_creates(objects)

    def test_one_without_the_bucket(self, s3: S3Store) -> None:
        with pytest.raises(StoreDoubt, match="bucket does not exist"):
            require_conditional_creates(Objects(parse("s3://elsewhere/place")))
