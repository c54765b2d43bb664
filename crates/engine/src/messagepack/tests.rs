use super::from_slice;
use crate::digest::Digest;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    Newtype(Box<Shape>),
    Tuple(u8, i64),
    Struct { name: String, inner: Option<Box<Shape>> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Name(String);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Tagged {
    Number { value: f64 },
    List { values: Vec<i32> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Either {
    Text(String),
    Many(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Flattened {
    id: u32,
    #[serde(flatten)]
    rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    shapes: Vec<Shape>,
    unit: (Unit, ()),
    name: Name,
    numbers: (u64, i64, f32, f64, i8, u16),
    flags: [bool; 2],
    letter: char,
    digest: Digest,
    json: serde_json::Value,
    map: BTreeMap<i32, Option<String>>,
    tagged: Tagged,
    either: Either,
    flattened: Flattened,
    #[serde(default)]
    last: Option<String>,
}

/// Reads with this reader and with `rmp_serde`, which must agree.
fn read<T: DeserializeOwned + Debug + PartialEq>(bytes: &[u8]) -> Option<T> {
    let here: Option<T> = from_slice(bytes).ok();
    if let Some(value) = &here {
        assert_eq!(rmp_serde::from_slice::<T>(bytes).as_ref().ok(), Some(value));
    }
    here
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![Just(Shape::Unit), any::<(u8, i64)>().prop_map(|(a, b)| Shape::Tuple(a, b))];
    leaf.prop_recursive(4, 12, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|shape| Shape::Newtype(Box::new(shape))),
            (".{0,40}", proptest::option::of(inner)).prop_map(|(name, inner)| Shape::Struct { name, inner: inner.map(Box::new) }),
        ]
    })
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        (-1e12..1e12).prop_map(|number: f64| number.into()),
        ".{0,300}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 40, 20, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..20).prop_map(Into::into),
            proptest::collection::btree_map(".{0,8}", inner, 0..20)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

fn everything() -> impl Strategy<Value = Everything> {
    let numbers = (any::<u64>(), any::<i64>(), -1e6_f32..1e6, -1e12..1e12, any::<i8>(), any::<u16>());
    let tagged = prop_oneof![
        (-1e6..1e6).prop_map(|value| Tagged::Number { value }),
        proptest::collection::vec(any::<i32>(), 0..5).prop_map(|values| Tagged::List { values }),
    ];
    let either = prop_oneof![".{0,5}".prop_map(Either::Text), proptest::collection::vec(".{0,5}", 0..5).prop_map(Either::Many),];
    let flattened =
        (any::<u32>(), proptest::collection::btree_map("[a-h]{3}", json(), 0..3)).prop_map(|(id, rest)| Flattened { id, rest });
    let map = proptest::collection::btree_map(any::<i32>(), proptest::option::of(".{0,5}"), 0..40);
    (
        (proptest::collection::vec(shapes(), 0..20), ".{0,9}", numbers, any::<[bool; 2]>(), any::<char>(), any::<[u8; 32]>()),
        (json(), map, tagged, either, flattened, proptest::option::of(".{0,5}")),
    )
        .prop_map(|((shapes, name, numbers, flags, letter, digest), (json, map, tagged, either, flattened, last))| {
            let (name, digest) = (Name(name), Digest(digest));
            Everything {
                shapes,
                unit: (Unit, ()),
                name,
                numbers,
                flags,
                letter,
                digest,
                json,
                map,
                tagged,
                either,
                flattened,
                last,
            }
        })
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in everything()) {
        let bytes = rmp_serde::to_vec(&value).unwrap();
        prop_assert_eq!(read(&bytes), Some(value));
    }

    #[test]
    fn damaged_bytes_are_an_error_or_another_value(value in everything(), place in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = rmp_serde::to_vec(&value).unwrap();
        prop_assert!(from_slice::<Everything>(&bytes[..place.index(bytes.len())]).is_err());
        *place.get_mut(&mut bytes) = byte;
        read::<Everything>(&bytes);
        bytes.push(byte);
        prop_assert!(from_slice::<Everything>(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_an_error_or_a_value(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read::<serde_json::Value>(&bytes);
        read::<Everything>(&bytes);
        read::<Vec<Shape>>(&bytes);
    }
}

#[test]
fn every_length_of_text_bytes_arrays_and_maps_is_read() {
    for length in [0, 15, 16, 31, 32, 255, 256, 65_535, 65_536] {
        let text = "x".repeat(length);
        assert_eq!(read(&rmp_serde::to_vec(&text).unwrap()), Some(text));
        let list = vec![7_u8; length];
        assert_eq!(read(&rmp_serde::to_vec(&list).unwrap()), Some(list));
        let map: BTreeMap<u32, bool> = (0..length).map(|key| (u32::try_from(key).unwrap(), true)).collect();
        assert_eq!(read(&rmp_serde::to_vec(&map).unwrap()), Some(map));
    }
}

#[test]
fn numbers_at_the_limits_of_each_encoding_are_read() {
    let limits = [0, 31, 32, 127, 128, 255, 256, 32_767, 32_768, 65_535, 65_536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32];
    for number in limits.into_iter().chain([i64::MAX]).flat_map(|number| [number, -number, -number - 1]) {
        assert_eq!(read(&rmp_serde::to_vec(&number).unwrap()), Some(number));
        assert_eq!(read::<u64>(&rmp_serde::to_vec(&number).unwrap()), u64::try_from(number).ok());
    }
    assert_eq!(read(&rmp_serde::to_vec(&u64::MAX).unwrap()), Some(u64::MAX));
    assert_eq!(read::<i64>(&rmp_serde::to_vec(&u64::MAX).unwrap()), None);
}

#[test]
fn missing_fields_get_their_default_and_extra_ones_are_an_error() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Known {
        id: u32,
        #[serde(default)]
        name: Option<String>,
    }
    assert_eq!(from_slice::<Known>(&rmp_serde::to_vec(&(3,)).unwrap()).unwrap(), Known { id: 3, name: None });
    let error = from_slice::<Known>(&rmp_serde::to_vec(&(3, "a", 4)).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "an array has more elements than expected");
}

#[test]
fn a_value_that_is_ignored_is_skipped_whole() {
    let bytes = rmp_serde::to_vec(&(serde_json::json!({"a": [1, {"b": "c"}], "d": null}), 5)).unwrap();
    let (_, number): (serde::de::IgnoredAny, u8) = from_slice(&bytes).unwrap();
    assert_eq!(number, 5);
    let error = from_slice::<serde::de::IgnoredAny>(&[0xdd, 0xff, 0xff, 0xff, 0xff]).unwrap_err();
    assert_eq!(error.to_string(), "it ends in the middle of a value");
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    let message = |bytes: &[u8]| from_slice::<(u8, String)>(bytes).unwrap_err().to_string();
    assert_eq!(message(&[0x92, 0x01, 0xc3]), "at byte 2 there is a boolean instead of text");
    assert_eq!(message(&[0x92, 0xff, 0xa0]), "at byte 1 there is an integer instead of a non-negative integer");
    assert_eq!(message(&[0x92, 0x01, 0xa1, 0xff]), "text at byte 3 is not UTF-8");
    assert_eq!(message(&[0x92, 0x01, 0xc1]), "at byte 2 there is an unknown marker instead of a value");
    assert_eq!(message(&[0x92, 0x01]), "it ends in the middle of a value");
    assert_eq!(message(&[0x92, 0x01, 0xa0, 0x00]), "it continues after its end");
}

#[test]
fn deep_nesting_is_an_error() {
    let nested = |levels: usize| {
        let mut bytes = vec![0x91; levels];
        bytes.push(0x90);
        from_slice::<serde_json::Value>(&bytes)
    };
    assert!(nested(1_000).is_ok());
    assert_eq!(nested(100_000).unwrap_err().to_string(), "its values are nested more than 1024 levels deep");
    let mut variants = b"\x81\xa7Newtype".repeat(5_000);
    variants.extend(b"\xa4Unit");
    assert!(from_slice::<Shape>(&variants).is_err());
}
