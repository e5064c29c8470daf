package envelope

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What other SDKs were seen to store.
const (
	peerLaravelReserved = `{"trace_id":"872270ac-d9b1-40bc-978a-207d5f2b0b68","meta":{"created_at":1796069353873,` +
		`"id":"64590032-0290-41f5-b332-bf0164f1acb4","schema_version":1,"lang":"php","queue":"orders"},"attempts":1,` +
		`"data":{"obj":{},"f":1,"nul":null,"name":"é😀","html":"<a&b>","order_id":1042,"url":"https:\/\/x\/y",` +
		`"big":9.007199254741e+15,"empty":{}},"job":"urn:babel:orders:created"}`
	peerPython = `{"job":"urn:babel:orders:created","trace_id":"26523c02-2da9-4ba4-b17f-5c21cd966bba","data":{"order_id":1042,` +
		`"url":"https://x/y","name":"é😀","empty":[],"obj":{},"f":1.0,"big":9007199254740993,"nul":null,"html":"<a&b>"},` +
		`"meta":{"id":"469d3137-4588-4f1a-97b6-03993564834a","queue":"orders","lang":"python","schema_version":1,"created_at":1796069348454},"attempts":0}`
	peerGoFramed = `{"__bq_frame":1,"headers":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","x-é":"a/b\u0026c"},` +
		`"body":"{\"job\":\"urn:babel:orders:created\",\"trace_id\":\"0826fdba-3e62-4cbf-983a-4b6655513181\",\"data\":{\"html\":\"\u003ca\u0026b\u003e\"},` +
		`\"meta\":{\"id\":\"7f9ac671-0e05-4bec-ac74-3cc29370f0d0\",\"queue\":\"orders\",\"lang\":\"go\",\"schema_version\":1,\"created_at\":1796069353190},\"attempts\":0}"}`
	peerLaravelDead = `{"trace_id":"11111111-1111-4111-8111-111111111111","meta":{"created_at":1782000000123,"id":"22222222-2222-4222-8222-222222222222",` +
		`"lang":"go","schema_version":1,"queue":"orders"},"job":"urn:babel:orders:created","data":{"order_id":1042},"attempts":2,` +
		`"dead_letter":{"reason":"failed","error":"boom é/x","exception":"RuntimeException","failed_at":1796069354195,"original_queue":"orders","attempts":3,"lang":"php"}}`
	peerPHPEmptyData = `{"job":"urn:babel:orders:created","trace_id":"9f392fb6-73cb-4b87-a925-60cd7dece47c","data":[],` +
		`"meta":{"id":"25d31ac5-b218-442c-8ec6-2f8a357e3ffc","queue":"orders","lang":"php","schema_version":1,"created_at":1796069353396},"attempts":0}`
	peerLaravelNative = `{"uuid":"29f27b48-4f5d-46a9-be61-080935269a5e","displayName":"App\\Jobs\\Foo","job":"App\\Jobs\\Foo@handle","maxTries":null,` +
		`"data":{"a":"é\/x"},"createdAt":1796069353,"id":"EDqg7grHMVR1RN1xJX4u8OsolIVyasvq","attempts":0,"delay":null}`
)

func TestPeerLaravelReserved(t *testing.T) {
	t.Parallel()
	got := mustDecode(t, peerLaravelReserved)
	want := Envelope{
		URN: "urn:babel:orders:created", TraceID: "872270ac-d9b1-40bc-978a-207d5f2b0b68", Attempts: 1,
		Data: `{"obj":{},"f":1,"nul":null,"name":"é😀","html":"<a&b>","order_id":1042,"url":"https:\/\/x\/y","big":9.007199254741e+15,"empty":{}}`,
		Meta: Meta{ID: "64590032-0290-41f5-b332-bf0164f1acb4", Queue: "orders", Lang: "php", CreatedAt: 1796069353873},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	edited, n, err := RaiseAttempts(peerLaravelReserved)
	if err != nil || n != 2 || edited != strings.Replace(peerLaravelReserved, `"attempts":1`, `"attempts":2`, 1) {
		t.Errorf("got %s, %d, %v", edited, n, err)
	}
}

func TestPeerPython(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(peerPython, mustDecode(t, peerPython).Encode()); diff != "" {
		t.Errorf("another SDK's canonical text is not ours (-want +got)\n%s", diff)
	}
}

func TestPeerGoFramed(t *testing.T) {
	t.Parallel()
	f, ok := Unframe(peerGoFramed)
	if !ok {
		t.Fatal("not taken for a frame")
	}
	headers := map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x-é": "a/b&c"}
	if diff := cmp.Diff(headers, f.Headers); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if e := mustDecode(t, f.Body); e.Data != `{"html":"<a&b>"}` {
		t.Errorf("data is %s", e.Data)
	}
	got, err := RequeueEdit(peerGoFramed)
	want := strings.Replace(peerGoFramed, `\"attempts\":0`, `\"attempts\":1`, 1)
	if err != nil || got != want {
		t.Errorf("%v (-want +got)\n%s", err, cmp.Diff(want, got))
	}
}

func TestPeerLaravelDeadLettered(t *testing.T) {
	t.Parallel()
	e := mustDecode(t, peerLaravelDead)
	if !strings.HasPrefix(e.DeadLetter, `{"reason":"failed"`) || e.Attempts != 2 {
		t.Errorf("got %q, %d", e.DeadLetter, e.Attempts)
	}
	got := DeadLetterRecord(peerLaravelDead, DeadLetter{Reason: ReasonFailed, FailedAt: 1, OriginalQueue: "q", Attempts: 2})
	want := peerLaravelDead[:strings.Index(peerLaravelDead, `"dead_letter"`)] + block + `}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPeerRefused(t *testing.T) { // E3, Z8
	t.Parallel()
	for name, tc := range map[string]struct {
		text    string
		foreign bool
	}{
		"PHP's empty data":     {peerPHPEmptyData, false},
		"a native Laravel job": {peerLaravelNative, true},
	} {
		if e, err := Decode(tc.text); err == nil {
			t.Errorf("%s: accepted as %+v", name, e)
		}
		if IsForeign(tc.text) != tc.foreign {
			t.Errorf("%s: IsForeign is %t", name, !tc.foreign)
		}
	}
}
