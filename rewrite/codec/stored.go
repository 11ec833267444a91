package codec

// AppendStored appends a zstd frame to dst whose blocks are src as it is, not
// compressed (RFC 8878, section 3.1.1). src is shorter than 4 GiB.
func AppendStored(dst, src []byte) []byte {
	dst = appendFrameHeader(dst, len(src))
	for {
		block := src[:min(len(src), zstdBlock)]
		src = src[len(block):]
		dst = append(appendBlockHeader(dst, blockRaw, len(block), len(src) == 0), block...)
		if len(src) == 0 {
			return dst
		}
	}
}
