package envelope

import "testing"

// addSeeds gives a fuzz target every text of the vectors and some of the peers.
func addSeeds(f *testing.F, add func(text string)) {
	f.Helper()
	v := loadVectors(f)
	for _, tc := range v.Accept {
		add(tc.Body)
	}
	for _, tc := range v.AttemptsEdit {
		add(tc.Ready)
	}
	for _, tc := range v.Unframe {
		add(tc.Stored)
	}
	for _, tc := range v.DeadLetter {
		add(tc.Body)
		add(tc.Record)
	}
	for _, tc := range v.RequeueEdit {
		add(tc.Stored)
	}
	for _, text := range []string{
		peerLaravelReserved, peerPython, peerGoFramed, peerLaravelDead, peerPHPEmptyData, peerLaravelNative,
		`{"job":"a","trace_id":"t","data":{},"meta":{"schema_version":1,"ts":1,"id":5},"timestamp":0,"j\u006fb":"\ud800\udc00"}`,
		`{"__bq_frame":1,"headers":{"a":"1","a":5},"body":"{\"attempts\":\u0031,\"a\":\"\\u0041\ud800\"}","attempts":2}`,
		`{"dead_letter":1, "a":[[],{"b":-1.5e+3}] ,"dead\u005fletter":2 }`,
	} {
		add(text)
	}
}

func FuzzDecode(f *testing.F) {
	addSeeds(f, func(text string) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text string) { checkDecode(t, text) })
}

func FuzzUnframe(f *testing.F) {
	addSeeds(f, func(text string) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text string) { checkUnframe(t, text) })
}

func FuzzRaiseAttempts(f *testing.F) {
	addSeeds(f, func(text string) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text string) {
		checkRaise(t, text)
		checkRequeue(t, text)
	})
}

func FuzzDeadLetterRecord(f *testing.F) {
	addSeeds(f, func(text string) { f.Add(text, "boom \xff é") })
	f.Fuzz(func(t *testing.T, text, reason string) { checkDeadLetter(t, text, reason) })
}
