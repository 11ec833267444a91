// Package inspect looks into data and delete files for what they say about
// themselves, without rewriting anything: Parquet footers, the positions in
// position delete files, deletion vectors.
//
// What it reads is hostile: sizes, counts and depths are checked before
// anything is allocated, and a library that panics is an error.
package inspect
