//! Sealed texts: opened by their key in their place, and by nothing else.

use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit,
    aead::{AeadInOut, inout::InOutBuf},
};
use proptest::prelude::*;

use super::*;

fn sealed(key: &SecretKey, associated: &[u8], plain: &[u8]) -> Vec<u8> {
    let mut bytes = plain.to_vec();
    let tag = seal(key, associated, &mut bytes);
    bytes.extend_from_slice(&tag);
    bytes
}

#[test]
fn golden_derivations() {
    let scope_key = SecretKey::new([7; 32]);
    let nonce = [9; 24];
    assert_eq!(
        hex::encode(body_key(&scope_key, &nonce).bytes()),
        "71390ec3ddbe710233d3877a95e5cf0760ccf9a441d3634594ba56376b671f46"
    );
    assert_eq!(hex::encode(type_tag(&scope_key, "run.start")), "222f5362fe641d8f");
    assert_eq!(
        hex::encode(sealed(&body_key(&scope_key, &nonce), b"header", b"{}")),
        "65d8341aa0c032b2521cd8f6cddd55c7d606"
    );
}

#[test]
fn a_seal_is_not_shown() {
    let opened = Opened { nonce: [1; 24], type_tag: [2; 8], key: SecretKey::new([3; 32]) };
    assert_eq!(format!("{:?}", Seal::Opened(opened)), "Opened");
}

#[test]
fn a_seal_survives_json() {
    let opened = Opened { nonce: [1; 24], type_tag: [2; 8], key: SecretKey::new([3; 32]) };
    for seal in [Seal::None, Seal::Opened(opened), Seal::Erased(ErasedRecord([4, 5].into()))] {
        let text = serde_json::to_string(&seal).unwrap();
        assert_eq!(serde_json::from_str::<Seal>(&text).unwrap(), seal, "{text}");
    }
}

proptest! {
    /// RFC 8439, as somebody else wrote it.
    #[test]
    fn another_implementation_seals_the_same(
        plain in prop::collection::vec(any::<u8>(), 0..2_000),
        associated in prop::collection::vec(any::<u8>(), 0..300),
        key: [u8; 32],
    ) {
        let cipher = ChaCha20Poly1305::new(&key.into());
        let mut theirs = plain.clone();
        let buffer = InOutBuf::from(theirs.as_mut_slice());
        let tag = cipher.encrypt_inout_detached(&[0; 12].into(), &associated, buffer).unwrap();
        theirs.extend_from_slice(&tag);
        prop_assert_eq!(sealed(&SecretKey::new(key), &associated, &plain), theirs);
    }

    #[test]
    fn a_sealed_text_is_opened_in_its_place_only(
        plain in prop::collection::vec(any::<u8>(), 0..300),
        associated in prop::collection::vec(any::<u8>(), 0..40),
        flip in any::<(prop::sample::Index, u8)>(),
    ) {
        let key = SecretKey::new([7; 32]);
        let bytes = sealed(&key, &associated, &plain);
        let opened = open(&key, &associated, &bytes);
        prop_assert_eq!(opened.as_ref(), Some(&plain));
        prop_assert!(open(&SecretKey::new([8; 32]), &associated, &bytes).is_none());
        prop_assert!(open(&key, &[&associated[..], b"x"].concat(), &bytes).is_none());
        let mut changed = bytes.clone();
        *flip.0.get_mut(&mut changed) ^= flip.1.max(1);
        prop_assert!(open(&key, &associated, &changed).is_none());
    }
}
