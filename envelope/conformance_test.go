package envelope

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/babelpool/babelpool/internal/testredis"
)

// conformance is the part of the public conformance data that concerns this
// package. The data is not part of the repository; the tests of this package
// cover the same ground with cases of their own.
type conformance struct {
	dir   string
	Cases []struct {
		Name, File string
		Valid      bool
		Expect     struct {
			URN        string
			Data       any
			Attempts   int64
			Lang       string
			DeadLetter map[string]any `json:"dead_letter"`
		}
	}
	Roundtrip struct {
		Cases []struct {
			Name, File string
			Attempts   int64          `json:"expect_attempts"`
			Preserved  map[string]any `json:"expect_preserved"`
		}
	}
	DataShape struct {
		Cases []struct {
			Name, Mode, File, URN, Queue string
			Data                         map[string]any
			Encoded                      string `json:"expect_encoded_data_json"`
			Valid                        bool
		}
	} `json:"data_shape"`
	ForbiddenKeys struct {
		Cases []struct {
			Name, File string
			Key        string   `json:"forbidden_key"`
			Absent     []string `json:"expect_absent_after_reencode"`
		}
	} `json:"forbidden_keys"`
}

func loadConformance(t *testing.T) conformance {
	t.Helper()
	c := conformance{dir: os.Getenv("BQ_CONFORMANCE_DIR")}
	if c.dir == "" {
		testredis.Missing(t, "BQ_CONFORMANCE_DIR does not name the directory of the public conformance data")
	}
	if err := json.Unmarshal([]byte(c.read(t, "manifest.json")), &c); err != nil {
		t.Fatalf("manifest: %v", err)
	}
	return c
}

func (c *conformance) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConformanceCases(t *testing.T) {
	t.Parallel()
	suite := loadConformance(t)
	for _, tc := range some(t, suite.Cases) {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			e, err := Decode(suite.read(t, tc.File))
			if (err == nil) != tc.Valid {
				t.Fatalf("Decode: %v, want valid: %t", err, tc.Valid)
			}
			if !tc.Valid {
				return
			}
			if e.URN != tc.Expect.URN || e.Attempts != tc.Expect.Attempts || e.Meta.Lang != tc.Expect.Lang {
				t.Errorf("got %q, %d, %q; want %q, %d, %q", e.URN, e.Attempts, e.Meta.Lang,
					tc.Expect.URN, tc.Expect.Attempts, tc.Expect.Lang)
			}
			var data any
			if err := e.Bind(&data); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.Expect.Data, data); diff != "" {
				t.Errorf("data (-want +got)\n%s", diff)
			}
			if (e.DeadLetter == "") != (tc.Expect.DeadLetter == nil) {
				t.Fatalf("dead_letter is %q", e.DeadLetter)
			}
			for key, want := range tc.Expect.DeadLetter {
				if got := valueAt(t, e.DeadLetter, "/"+key); !cmp.Equal(want, got) {
					t.Errorf("dead_letter %s is %v, want %v", key, got, want)
				}
			}
		})
	}
}

func TestConformanceRoundtrip(t *testing.T) { // E4
	t.Parallel()
	suite := loadConformance(t)
	for _, tc := range some(t, suite.Roundtrip.Cases) {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			e, err := Decode(suite.read(t, tc.File))
			if err != nil {
				t.Fatal(err)
			}
			e.Attempts++ // what a consumer that re-emits a message changes
			text := e.Encode()
			again, err := Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			if again.Attempts != tc.Attempts {
				t.Errorf("attempts is %d, want %d", again.Attempts, tc.Attempts)
			}
			for pointer, want := range tc.Preserved {
				if diff := cmp.Diff(want, valueAt(t, text, pointer)); diff != "" {
					t.Errorf("%s (-want +got)\n%s", pointer, diff)
				}
			}
		})
	}
}

func TestConformanceDataShape(t *testing.T) { // E1, E3
	t.Parallel()
	suite := loadConformance(t)
	for _, tc := range some(t, suite.DataShape.Cases) {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			switch tc.Mode {
			case "encode":
				e, err := New(tc.URN, tc.Queue, tc.Data)
				if err != nil {
					t.Fatal(err)
				}
				if want := `"data":` + tc.Encoded + `,`; !strings.Contains(e.Encode(), want) {
					t.Errorf("%s lacks %s", e.Encode(), want)
				}
			case "decode":
				if _, err := Decode(suite.read(t, tc.File)); (err == nil) != tc.Valid {
					t.Errorf("Decode: %v, want valid: %t", err, tc.Valid)
				}
			default:
				t.Fatalf("unknown mode %q", tc.Mode)
			}
		})
	}
}

func TestConformanceForbiddenKeys(t *testing.T) { // E5
	t.Parallel()
	suite := loadConformance(t)
	for _, tc := range some(t, suite.ForbiddenKeys.Cases) {
		t.Run(tc.Name, func(t *testing.T) {
			t.Parallel()
			text := suite.read(t, tc.File)
			e, err := Decode(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.Key}, e.ForbiddenKeys); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, pointer := range tc.Absent {
				if valueAt(t, text, pointer) == nil {
					t.Fatalf("the fixture has no %s", pointer)
				}
				if got := valueAt(t, e.Encode(), pointer); got != nil {
					t.Errorf("%s is still there: %v", pointer, got)
				}
			}
		})
	}
}

// valueAt resolves a simple JSON pointer in text, nil when nothing is there.
func valueAt(t *testing.T, text, pointer string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[part]
	}
	return v
}
