"""What verbs do, one file for each that does much: here torch may be imported, in the verbs' own files it may not."""
