//! A transport would be here.
