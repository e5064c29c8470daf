// Package jsonpath spells places in a JSON text, as error messages name them: $.lines[2].price.
package jsonpath

import "strconv"

// Root is the whole text.
const Root = "$"

// Index is the step to an element of an array.
func Index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// Key is the step to a member of an object.
func Key(key string) string {
	for i, c := range key {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return "[" + strconv.Quote(key) + "]"
		}
	}
	if key == "" {
		return `[""]`
	}
	return "." + key
}
