//! Pictures that go with a request.

use serde::{Deserialize, Serialize};

/// How the address of a picture begins that is in the address itself.
const SCHEME: &str = "data:";
/// What stands between the type and the picture.
const ENCODING: &str = ";base64,";

/// One picture. It is small enough to stand in an event: `IMAGES_CHARS_MAX` bounds all of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// What it is encoded as.
    pub media_type: ImageType,
    /// The picture in base64, with padding.
    pub data: String,
}

/// What a picture may be encoded as: the types that every provider reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageType {
    /// PNG.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// GIF.
    #[serde(rename = "image/gif")]
    Gif,
    /// WebP.
    #[serde(rename = "image/webp")]
    Webp,
}

/// Why an address is no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoImage {
    /// The picture is somewhere else, or its type is another.
    #[error(
        "a data URL of type image/png, image/jpeg, image/gif or image/webp in base64; nothing is fetched"
    )]
    OtherAddress,
    /// The data is no base64.
    #[error("a data URL with a picture in base64, with padding and without white space")]
    NoBase64,
}

impl ImageType {
    const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];

    /// The media type.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

impl Image {
    /// The picture in a data URL.
    pub fn from_data_url(url: &str) -> Result<Self, NoImage> {
        let (of_type, data) = url
            .strip_prefix(SCHEME)
            .and_then(|rest| rest.split_once(ENCODING))
            .ok_or(NoImage::OtherAddress)?;
        let named = |known: &ImageType| known.as_str().eq_ignore_ascii_case(of_type);
        let media_type = ImageType::ALL.into_iter().find(named).ok_or(NoImage::OtherAddress)?;
        if !is_base64(data) {
            return Err(NoImage::NoBase64);
        }
        Ok(Self { media_type, data: data.to_owned() })
    }

    /// The same as an address.
    pub fn data_url(&self) -> String {
        format!("{SCHEME}{}{ENCODING}{}", self.media_type.as_str(), self.data)
    }
}

/// Whole groups of four, of which the last may end with one or two marks for what is missing.
fn is_base64(data: &str) -> bool {
    let digits = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty() && data.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_url_is_a_picture_and_nothing_else_is() {
        for (url, expected) in [
            ("data:image/png;base64,iVBORw0=", Ok(ImageType::Png)),
            ("data:IMAGE/JPEG;base64,/9j/4A==", Ok(ImageType::Jpeg)),
            ("data:image/webp;base64,abc+", Ok(ImageType::Webp)),
            ("data:image/gif;base64,", Err(NoImage::NoBase64)),
            ("data:image/gif;base64,====", Err(NoImage::NoBase64)),
            ("data:image/gif;base64,abc", Err(NoImage::NoBase64)),
            ("data:image/gif;base64,ab c", Err(NoImage::NoBase64)),
            ("data:image/gif;base64,a=bc", Err(NoImage::NoBase64)),
            ("data:image/svg+xml;base64,abcd", Err(NoImage::OtherAddress)),
            ("data:image/png,abcd", Err(NoImage::OtherAddress)),
            ("http://169.254.169.254/secret.png", Err(NoImage::OtherAddress)),
            ("file:///etc/passwd", Err(NoImage::OtherAddress)),
        ] {
            let read = Image::from_data_url(url);
            assert_eq!(
                read.as_ref().map(|image| image.media_type).map_err(|error| *error),
                expected,
                "{url}"
            );
            if let Ok(image) = read {
                assert!(image.data_url().eq_ignore_ascii_case(url), "{url}");
            }
        }
    }

    #[test]
    fn the_stored_name_is_the_media_type() {
        for known in ImageType::ALL {
            assert_eq!(serde_json::to_value(known).unwrap(), known.as_str());
        }
    }
}
