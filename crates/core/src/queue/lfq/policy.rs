//! LFQ's policies: the factor of a limit, 256ths. Written by `cargo xtask lfq` from the text beside this file.
use super::Features;

/// The learned tree.
pub fn tree(f: &Features) -> u32 {
    if f.cycles == 0 {
        if f.idle <= 472 {
            if f.drain_us <= 37319 {
                268
            } else if f.drain_us <= 48463 {
                163
            } else if f.drain_us <= 94909 {
                95
            } else {
                64
            }
        } else if f.drain_us <= 102038 {
            253
        } else {
            130
        }
    } else if f.idle <= 13 {
        if f.last_idle <= 8 {
            if f.last_min <= 70 {
                if f.last_age <= 49 {
                    239
                } else if f.drain_us <= 8880 {
                    244
                } else {
                    246
                }
            } else if f.min <= 69 {
                240
            } else if f.last_min <= 256 {
                233
            } else if f.last_drops <= 228 {
                155
            } else {
                100
            }
        } else {
            228
        }
    } else if f.idle <= 23 {
        257
    } else if f.idle <= 56 {
        360
    } else if f.idle <= 122 {
        453
    } else {
        657
    }
}

/// The rule that can be read.
pub fn rule(f: &Features) -> u32 {
    if f.cycles == 0 {
        if f.idle <= 500 {
            if f.drain_us <= 30000 {
                256
            } else if f.drain_us <= 60000 {
                160
            } else if f.drain_us <= 120000 {
                96
            } else {
                64
            }
        } else if f.drain_us <= 120000 {
            256
        } else {
            128
        }
    } else if f.idle <= 8 {
        if f.last_idle <= 8 {
            if f.last_min <= 64 {
                if f.last_age <= 48 {
                    256
                } else if f.drain_us <= 12000 {
                    250
                } else {
                    240
                }
            } else if f.min <= 64 {
                256
            } else if f.last_min <= 256 {
                216
            } else if f.last_drops <= 200 {
                150
            } else {
                100
            }
        } else {
            256
        }
    } else if f.idle <= 20 {
        290
    } else if f.idle <= 45 {
        360
    } else if f.idle <= 90 {
        448
    } else {
        640
    }
}
