package encode

// DictionaryPage makes the dictionary page of a dictionary that is complete, as
// Options.Dictionary asks the caller to write it. Of the options it uses Codec,
// Level and CRC.
func DictionaryPage(d *Dictionary, o Options) (Page, error) {
	a := assembler{leaf: d.leaf, o: &o}
	return a.dictionary(d)
}
