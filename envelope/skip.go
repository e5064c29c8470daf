package envelope

// nesting remembers, for each container that is open, whether it is an object.
// One bit a level: 64 levels cost no allocation, 10,000 levels 1.2 KiB.
type nesting struct {
	bits  uint64
	deep  []uint64 // full words of outer levels
	depth int
}

func (n *nesting) push(object bool) {
	if n.depth > 0 && n.depth%64 == 0 {
		n.deep = append(n.deep, n.bits)
	}
	n.bits <<= 1
	if object {
		n.bits |= 1
	}
	n.depth++
}

func (n *nesting) pop() {
	n.depth--
	if n.depth > 0 && n.depth%64 == 0 {
		last := len(n.deep) - 1
		n.bits, n.deep = n.deep[last], n.deep[:last]
		return
	}
	n.bits >>= 1
}

func (n *nesting) inObject() bool { return n.bits&1 == 1 }

// skipValue checks the value that begins at i, with everything inside it, and
// returns the index after it, -1 when it is not valid.
func (c *cursor) skipValue(i int) int {
	s := c.text
	var open nesting
	for {
		// A value is due at i.
		if i >= len(s) {
			c.fail(i, "the text ends early")
			return -1
		}
		switch b := s[i]; b {
		case '"':
			i, _ = c.quoted(i)
		case '{', '[':
			if c.depth+open.depth == maxDepth {
				c.fail(i, "nested too deeply")
				return -1
			}
			object := b == '{'
			next := skipSpace(s, i+1)
			if next < len(s) && s[next] == b+2 { // } is { plus 2, ] is [ plus 2
				i = next + 1
				break
			}
			open.push(object)
			if object {
				next = c.skipKey(next)
				if next < 0 {
					return -1
				}
			}
			i = next
			continue
		case 't':
			i = c.literal(i, "true")
		case 'f':
			i = c.literal(i, "false")
		case 'n':
			i = c.literal(i, "null")
		default:
			i = c.number(i)
		}
		if i < 0 {
			return -1
		}
		// A value ends at i: go on to the next one, leaving what ends here.
		for {
			if open.depth == 0 {
				return i
			}
			i = skipSpace(s, i)
			if i >= len(s) {
				c.fail(i, "the text ends early")
				return -1
			}
			object := open.inObject()
			if s[i] == ',' {
				i = skipSpace(s, i+1)
				if object {
					if i = c.skipKey(i); i < 0 {
						return -1
					}
				}
				break
			}
			if (object && s[i] != '}') || (!object && s[i] != ']') {
				c.fail(i, "no comma or end after a value")
				return -1
			}
			open.pop()
			i++
		}
	}
}

// skipKey checks a key and its colon, and returns the index of the value.
func (c *cursor) skipKey(i int) int {
	i, _ = c.quoted(i)
	if i < 0 {
		return -1
	}
	i = skipSpace(c.text, i)
	if i >= len(c.text) || c.text[i] != ':' {
		c.fail(i, "no colon after a key")
		return -1
	}
	return skipSpace(c.text, i+1)
}

// literal checks for one of the three words of JSON. NaN and Infinity, which
// some encoders write, are none.
func (c *cursor) literal(i int, word string) int {
	if len(c.text)-i < len(word) || c.text[i:i+len(word)] != word {
		c.fail(i, "an unknown word")
		return -1
	}
	return i + len(word)
}

// number checks a JSON number: an optional minus, an integer part without
// leading zeros, an optional fraction, an optional exponent.
func (c *cursor) number(i int) int {
	s := c.text
	at := i
	if s[i] == '-' {
		i++
	}
	switch {
	case i < len(s) && s[i] == '0':
		i++
	case i < len(s) && '1' <= s[i] && s[i] <= '9':
		i = digits(s, i)
	default:
		c.fail(at, "no value where one is due")
		return -1
	}
	if i < len(s) && s[i] == '.' {
		from := i + 1
		if i = digits(s, from); i == from {
			c.fail(at, "a number without digits after the point")
			return -1
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		from := i + 1
		if from < len(s) && (s[from] == '+' || s[from] == '-') {
			from++
		}
		if i = digits(s, from); i == from {
			c.fail(at, "a number without digits in the exponent")
			return -1
		}
	}
	return i
}

// digits returns the index of the first byte from i on that is no digit.
func digits(s string, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}
