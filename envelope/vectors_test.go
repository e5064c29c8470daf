package envelope

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// some fails the test when a section of the vectors is empty, as it would be
// after a rename.
func some[T any](t *testing.T, section []T) []T {
	t.Helper()
	if len(section) == 0 {
		t.Fatal("the vectors have no case of this section")
	}
	return section
}

func TestVectorsAccept(t *testing.T) { // E3
	t.Parallel()
	for _, tc := range some(t, loadVectors(t).Accept) {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			e, err := Decode(tc.Body)
			if !tc.OK {
				if !errors.Is(err, ErrPoison) {
					t.Fatalf("Decode: %v, want poison", err)
				}
				if tc.Rule == "Z8" && !IsForeign(tc.Body) {
					t.Error("IsForeign is false for a native job")
				}
				return
			}
			if err != nil {
				t.Fatalf("Decode: %v", err)
			}
			if e.URN != tc.URN || e.Attempts != tc.Attempts {
				t.Errorf("got %q, %d attempts; want %q, %d", e.URN, e.Attempts, tc.URN, tc.Attempts)
			}
		})
	}
}

func TestVectorsAttemptsEdit(t *testing.T) { // Z3
	t.Parallel()
	for _, tc := range some(t, loadVectors(t).AttemptsEdit) {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			got, n, err := RaiseAttempts(tc.Ready)
			if tc.Poison {
				if !errors.Is(err, ErrNotEditable) || got != "" || n != 0 {
					t.Fatalf("got %q, %d, %v; want ErrNotEditable", got, n, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.Reserved, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVectorsFrame(t *testing.T) { // F1
	t.Parallel()
	for i, tc := range some(t, loadVectors(t).Frame) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.Stored, EncodeFrame(tc.Body, tc.Headers)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVectorsUnframe(t *testing.T) { // F2
	t.Parallel()
	for i, tc := range some(t, loadVectors(t).Unframe) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			want := Frame{Body: tc.Body, Headers: tc.Headers, Attempts: -1}
			if tc.Bare {
				want = Frame{Body: tc.Stored, Attempts: -1}
			}
			got, framed := Unframe(tc.Stored)
			if framed == tc.Bare {
				t.Errorf("framed is %t", framed)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVectorsDeadLetter(t *testing.T) { // D2
	t.Parallel()
	for i, tc := range some(t, loadVectors(t).DeadLetter) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			got := DeadLetterRecord(tc.Body, DeadLetter{
				Reason: tc.Reason, Error: tc.Error, Exception: tc.Exception,
				FailedAt: tc.FailedAt, OriginalQueue: tc.OriginalQueue, Attempts: tc.Attempts,
			})
			if diff := cmp.Diff(tc.Record, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVectorsRequeueEdit(t *testing.T) { // L6
	t.Parallel()
	for i, tc := range some(t, loadVectors(t).RequeueEdit) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			got, err := RequeueEdit(tc.Stored)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.Requeued, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
