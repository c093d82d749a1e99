// What a test program may tell the main that all of them share.
#pragma once

/// Set before main by a program whose tests need a device that sees every access: elsewhere it exits 77, skipped.
extern bool needs_device_checks;
