"""Signatures of callbacks while the secret is replaced."""

import itertools

from umg_grpc.access.callback_signatures import CallbackSignatures

OLD, NEW = "the-old-secret-of-16", "the-new-secret-of-16"


def test_signatures_of_both_secrets_are_valid_during_a_rotation() -> None:
    replicas = [CallbackSignatures(OLD), CallbackSignatures(OLD, [NEW]), CallbackSignatures(NEW, [OLD])]
    for before, after in itertools.pairwise(replicas):
        for signer, verifier in ((before, after), (after, before)):
            assert verifier.is_valid("task", signer.path_of("task").rpartition("/")[2])
    assert not CallbackSignatures(NEW).is_valid("task", replicas[0].path_of("task").rpartition("/")[2])


def test_a_notification_is_signed_with_all_secrets_the_current_one_first() -> None:
    def signatures(signer: CallbackSignatures) -> list[str]:
        return signer.headers("key_1", "callback_1", 1, b"{}")["webhook-signature"].split(" ")

    [old], [new] = signatures(CallbackSignatures(OLD)), signatures(CallbackSignatures(NEW))
    assert signatures(CallbackSignatures(NEW, [OLD])) == [new, old]
