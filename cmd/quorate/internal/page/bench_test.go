package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkFleetPage asks for the page of the fleet, sorted by state, when nobody has asked
// for a while: all statuses are gathered for it. Within a second of that, they are not.
func BenchmarkFleetPage(b *testing.B) {
	for _, clusters := range []int{1000, 10000} {
		w := &world{}
		for i := range clusters {
			s := upgrading(i % 4)
			s.Metadata.Name = fmt.Sprintf("orders-%05d", i)
			w.list = append(w.list, s)
		}
		ask := func(h http.Handler) *httptest.ResponseRecorder {
			to := httptest.NewRecorder()
			h.ServeHTTP(to, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/?sort=phase", nil))
			return to
		}
		for _, again := range []bool{false, true} {
			name := map[bool]string{false: "first", true: "again"}[again]
			b.Run(fmt.Sprintf("%s/clusters=%d", name, clusters), func(b *testing.B) {
				b.ReportAllocs()
				h := w.handler()
				for b.Loop() {
					if !again {
						b.StopTimer()
						h = w.handler()
						b.StartTimer()
					}
					if to := ask(h); to.Code != http.StatusOK {
						b.Fatal(to.Code, to.Body)
					}
				}
			})
		}
	}
}
