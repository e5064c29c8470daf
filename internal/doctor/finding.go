package doctor

// Level says how bad a finding is.
type Level string

// The levels, from good to bad.
const (
	OK      Level = "ok"
	Info    Level = "info"    // worth knowing
	Warning Level = "warning" // works now; some event turns it into loss or a stop
	Problem Level = "problem" // messages are stuck, refused or in danger
	Unknown Level = "unknown" // could not be looked at
)

// Finding is one thing that was looked at.
type Finding struct {
	Level Level `json:"level"`
	// Check is the stable name of what was looked at, such as "maxmemory-policy".
	Check string `json:"check"`
	// Queue is empty for what concerns the server.
	Queue string `json:"queue,omitempty"`
	// Found is what is the case. Names in it are quoted.
	Found string `json:"found"`
	// Advice is what to do about it; empty when there is nothing to do.
	Advice string `json:"advice,omitempty"`
	// Messages are the messages that the finding is about, as far as they were read.
	Messages []Message `json:"messages,omitempty"`
}

// Message names a message. What the body does not say is empty.
type Message struct {
	ID  string `json:"id"`
	URN string `json:"urn"`
}

// Worst is the worst level of findings. What could not be looked at counts as a warning.
func Worst(findings []Finding) Level {
	rank := map[Level]int{OK: 0, Info: 1, Unknown: 2, Warning: 2, Problem: 3}
	worst := OK
	for _, f := range findings {
		if rank[f.Level] > rank[worst] {
			worst = f.Level
		}
	}
	if worst == Unknown {
		return Warning
	}
	return worst
}
