"""Texts that only the holder of a certificate reads, whoever carries them.

Ephemeral ECDH on P-256, HKDF-SHA256 over the shared point with both public keys, AES-256-GCM::

    65 bytes  the ephemeral public key, uncompressed
    rest      the text and its tag of 16 bytes

Each text has a key of its own, so the nonce is 12 zero bytes.  A sealed text opens for its context
alone: in another query plan, or as another user's, it is of no use.
"""

from __future__ import annotations

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from onyx.errors import NotAuthenticated

_POINT_BYTES = 65
_NONCE = bytes(12)
_PURPOSE = b"onyx sealed text 1\n"


def seal_for(certificate: x509.Certificate, text: bytes, context: bytes) -> bytes:
    """NotAuthenticated for a certificate whose key is none of P-256."""
    public = certificate.public_key()
    if not _is_p256(public):
        raise NotAuthenticated("nothing is sealed for a certificate whose key is not of P-256")
    assert isinstance(public, ec.EllipticCurvePublicKey)
    own = ec.generate_private_key(ec.SECP256R1())
    point = _point(own.public_key())
    key = _key(own.exchange(ec.ECDH(), public), point + _point(public))
    return point + AESGCM(key).encrypt(_NONCE, text, context)


def open_sealed(private: ec.EllipticCurvePrivateKey, sealed: bytes, context: bytes) -> bytes:
    """NotAuthenticated where it was sealed for another certificate or context, or was altered."""
    point, rest = sealed[:_POINT_BYTES], sealed[_POINT_BYTES:]
    try:
        other = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        key = _key(private.exchange(ec.ECDH(), other), point + _point(private.public_key()))
        return AESGCM(key).decrypt(_NONCE, rest, context)
    except (InvalidTag, ValueError):
        reason = "the text is sealed for another certificate or another query plan"
        raise NotAuthenticated(reason) from None


def _is_p256(key: object) -> bool:
    return isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _key(shared: bytes, points: bytes) -> bytes:
    return HKDF(SHA256(), 32, None, _PURPOSE + points).derive(shared)
