package publisher

// NewAt is New with a clock of the test's own: seconds, as text.
func NewAt(cfg Config, now string) (*Publisher, error) {
	return newPublisher(cfg, func() string { return now })
}

// The limits of one command, for tests that count commands.
const (
	ChunkMessages = chunkMessages
	ChunkBytes    = chunkBytes
)
