"""Mutants of what an S3 store's answers are taken for, by objects, bookies and metadata stores."""

from .change import Drop, DropArgument, Replace
from .mutant import Mutant

FOLDER = "tests/unit/storage/s3"
OBJECTS = f"{FOLDER}/test_objects.py"
CREATE = f"{OBJECTS}::TestCreate"
LOOKS = f"{OBJECTS}::TestLooks"
UPLOAD = f"{OBJECTS}::TestUpload"
PROBE = f"{OBJECTS}::TestProbe"

MUTANTS = (
    # --- objects ---------------------------------------------------------------------------------
    Mutant(
        "an object is put without the condition",
        "S3Objects.put",
        Replace("{'IfMatch': replaced} if replaced else {'IfNoneMatch': '*'}", "{}"),
        (f"{CREATE}::test_a_race_has_one_winner", f"{PROBE}::test_one_that_does"),
    ),
    Mutant(
        "an object that is there is another's",
        "Objects._create",
        Replace("self.own(name, token)", "None"),
        (f"{CREATE}::test_a_lost_answer_is_settled_by_a_look[lost answer-False]",),
    ),
    Mutant(
        "an object that is there is one's own",
        "Objects.own",
        Replace(
            "Created(token, found.etag) if found.token == token else None",
            "Created(token, found.etag)",
        ),
        (
            f"{CREATE}::test_a_race_has_one_winner",
            f"{CREATE}::test_the_object_of_another_is_a_sure_answer",
        ),
    ),
    Mutant(
        "an object in doubt is not looked for",
        "Objects._create",
        Replace("return self.own(name, token, doubt)", "raise doubt"),
        (
            f"{CREATE}::test_a_lost_answer_is_settled_by_a_look[lost answer-True]",
            f"{CREATE}::test_the_object_of_another_is_a_sure_answer",
        ),
    ),
    Mutant(
        "an object that is absent after a doubt will never be there",
        "Objects.own",
        Replace(
            "raise doubt or StoreDoubt('the name was taken, and is free again')", "return None"
        ),
        (
            f"{CREATE}::test_what_is_sent_once_stays_in_doubt",
            f"{CREATE}::test_what_lasts_is_a_doubt_and_never_somebody_else_s",
            f"{CREATE}::test_a_name_that_was_taken_and_is_free_again_is_a_doubt",
        ),
    ),
    Mutant(
        "the doubt of a look hides that of the request",
        "Objects.own",
        Replace("doubt or second", "second"),
        (f"{CREATE}::test_a_look_that_fails_leaves_the_doubt_of_the_request",),
    ),
    Mutant(
        "each request that makes an object has another token",
        "Objects._create",
        Replace(
            "self.store.put(self.place.key(name), body, token=token)",
            "self.store.put(self.place.key(name), body, token=environment.token())",
        ),
        (f"{CREATE}::test_it_is_one_request",),
    ),
    Mutant(
        "a conflict of two requests is final",
        "connection._meaning",
        Replace(
            "status >= 500 or status == 409 or asks_for_less", "status >= 500 or asks_for_less"
        ),
        (f"{CREATE}::test_what_passes_is_sent_again[409]",),
    ),
    Mutant(
        "a conflict of two requests is a lost race",
        "connection._meaning",
        Replace("case [412, _]: ...", "case [409 | 412, _]: ..."),
        (f"{CREATE}::test_what_passes_is_sent_again[409]",),
    ),
    Mutant(
        "any 404 is an absence",
        "connection._meaning",
        Replace("case [404, 'NoSuchKey']: ...", "case [404, _]: ..."),
        (f"{LOOKS}::test_no_other_answer_is_an_absence",),
    ),
    Mutant(
        "an answer that was cut short is whole",
        "connection.get",
        Replace("len(data) != answer['ContentLength']", "False"),
        (f"{LOOKS}::test_a_look_is_sent_again[cut short]",),
    ),
    Mutant(
        "an answer that was cut short is final",
        "connection.get",
        Replace(
            "StoreDoubt('the answer was cut short', is_passing=True)",
            "StoreDoubt('the answer was cut short')",
        ),
        (f"{LOOKS}::test_a_look_is_sent_again[cut short]",),
    ),
    Mutant(
        "what was sent once is sent again",
        "connection.repeated",
        Replace("doubt.is_passing and (not only_if_refused)", "doubt.is_passing"),
        (f"{UPLOAD}::test_it_is_begun_once_in_doubt",),
    ),
    Mutant(
        "a store that answers no request for a range is believed",
        "connection.size_behind",
        Replace(
            "if not size.isdecimal():\n    ...",
            "size = size or '0'\n"
            "if False:\n"
            "    raise StoreDoubt('the store does not support requests for a range of bytes')",
        ),
        (f"{LOOKS}::test_a_store_that_ignores_ranges_is_a_doubt",),
    ),
    Mutant(
        "a range of sixteen bytes is never a sentinel",
        "Objects.read",
        Replace("found is not None and found.size == SENTINEL_BYTES", "False"),
        (f"{LOOKS}::test_sixteen_bytes_may_be_a_sentinel",),
    ),
    Mutant(
        "contents may be a sentinel",
        "objects._plain",
        Replace("_is_sign(data)", "False"),
        (f"{CREATE}::test_contents_that_look_like_a_sentinel_are_refused",),
    ),
    Mutant(
        "only the first page of a listing is read",
        "Objects.listed",
        Replace("not after_page", "True"),
        (f"{LOOKS}::test_a_listing_is_read_to_its_end",),
    ),
    Mutant(
        "the object of a folder is in it",
        "Objects.listed",
        Drop("found.pop"),
        (f"{LOOKS}::test_a_listing_is_read_to_its_end",),
    ),
    Mutant(
        "what is gone cannot be deleted",
        "Objects.delete",
        Replace("suppress(NoSuchObject)", "suppress(ZeroDivisionError)"),
        (f"{LOOKS}::test_what_is_gone_can_be_deleted",),
    ),
    # --- uploads ---------------------------------------------------------------------------------
    Mutant(
        "an upload replaces what is there",
        "S3Parts.finish",
        DropArgument("IfNoneMatch"),
        (f"{UPLOAD}::test_the_object_of_another_stays",),
    ),
    Mutant(
        "an upload whose answer was lost is not looked for",
        "Upload._complete",
        Replace("return self._objects.own(self._name, self._token, doubt)", "raise doubt"),
        (f"{UPLOAD}::test_a_lost_answer_is_settled_by_a_look",),
    ),
    Mutant(
        "an upload is begun again in doubt",
        "Upload._begun",
        Replace(
            "repeated(lambda: store.begin(key, self._token), only_if_refused=True)",
            "repeated(lambda: store.begin(key, self._token))",
        ),
        (f"{UPLOAD}::test_it_is_begun_once_in_doubt",),
    ),
    Mutant(
        "parts go one after the other",
        "Upload._at_once",
        Replace("max(1, PARTS_AT_ONCE * PART_BYTES // self._part_bytes())", "1"),
        (f"{UPLOAD}::test_parts_go_side_by_side",),
    ),
    Mutant(
        "an upload keeps all parts in memory",
        "Upload.write",
        Replace("len(self._rest) > length * count", "False"),
        (f"{UPLOAD}::test_few_parts_are_in_memory",),
    ),
    Mutant(
        "parts are put together in the order in which they arrived",
        "S3Parts.finish",
        Replace("sorted(self._etags.items())", "reversed(sorted(self._etags.items()))"),
        (f"{UPLOAD}::test_parts_are_cut",),
    ),
    Mutant(
        "an upload that lost stays behind",
        "Upload.finish",
        Replace("created is not None", "True"),
        (f"{UPLOAD}::test_the_object_of_another_stays",),
    ),
    Mutant(
        "a store that overwrites large objects is taken",
        "require_conditional_creates",
        Replace(
            "not is_absent or first is None or second is not None or (third is not None) "
            "or (not is_kept)",
            "not is_absent or first is None or second is not None",
        ),
        (f"{PROBE}::test_one_that_ignores_conditions",),
    ),
)
