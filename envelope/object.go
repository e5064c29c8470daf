package envelope

// IsObject reports whether text is one JSON object in valid UTF-8 and nothing
// else but white space around it, nested at most 10,000 deep. Only such a text
// can take a dead-letter record (D2).
func IsObject(text string) bool {
	c := cursor{text: text}
	return c.object()
}

// IsForeign reports whether text looks like a job of a framework's own kind
// that shares the list, such as a native Laravel job: one JSON object with a
// string job and no meta (Z8). It says nothing about texts that Decode accepts,
// which always have a meta; it is meant for those it refused.
func IsForeign(text string) bool {
	c := cursor{text: text}
	job, meta := "", false
	c.enter()
	for c.key() {
		switch c.name() {
		case "job":
			job = c.value()
		case "meta":
			meta = true
			c.value()
		default:
			c.value()
		}
	}
	return c.end() && !meta && job != "" && job[0] == '"'
}
