//! Codes: short, stable names for problems. Each list is closed, so the compiler requires a code wherever something is refused.

/// Defines a closed list of codes: the enum, the text of each code, and the list of all.
#[macro_export]
macro_rules! codes {
    ($(#[$list:meta])* $seen:vis enum $name:ident { $($(#[$code:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$list])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $seen enum $name {
            $($(#[$code])* $variant,)+
        }

        impl $name {
            /// All codes, in declaration order.
            $seen const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The code as written in messages.
            $seen const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.text())
            }
        }
    };
}
