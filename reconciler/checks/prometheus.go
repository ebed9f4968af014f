package checks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/quorate/quorate/schema"
)

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 1 << 20

// result is what /api/v1/query answers.
type result struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Warnings  []string `json:"warnings"`
	Data      struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	} `json:"data"`
}

// query asks a Prometheus.
func (a *Asker) query(ctx context.Context, c schema.PrometheusCheck, patience time.Duration) (problem, detail string) {
	base, err := url.Parse(c.URL)
	if err != nil {
		return "its URL cannot be read", ""
	}
	shown, u := shownURL(base), base.JoinPath("api", "v1", "query")
	u.RawQuery = url.Values{"query": {c.Query}, "timeout": {patience.String()}}.Encode()
	response, problem, detail := a.do(ctx, u, shown, patience)
	if problem != "" {
		return problem, detail
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return unreached(ctx, err, shown, patience)
	}
	if len(text) > maxAnswer {
		return "the answer of " + shown + " has more than 1 MiB: aggregate in the query", ""
	}
	var r result
	err = json.Unmarshal(text, &r)
	switch {
	case response.StatusCode != http.StatusOK && slices.Contains([]string{"bad_data", "execution", "timeout", "canceled", "internal", "unavailable"}, r.ErrorType):
		return fmt.Sprintf("%s (%s)", badStatus(response, shown), r.ErrorType), ""
	case response.StatusCode != http.StatusOK:
		return badStatus(response, shown), ""
	case err != nil || r.Status != "success":
		return "the answer of " + shown + " is not that of a Prometheus", ""
	case len(r.Warnings) > 0:
		return "the answer of " + shown + " has warnings, and may be incomplete", ""
	}
	return judge(r, shown)
}

// judge says why the result of a query is not 1.
func judge(r result, shown string) (problem, detail string) {
	strange := fmt.Sprintf("the query of %s must return a scalar or an instant vector", shown)
	var values [][2]any
	switch r.Data.Type {
	case "scalar":
		values = make([][2]any, 1)
		if json.Unmarshal(r.Data.Result, &values[0]) != nil {
			return strange, ""
		}
	case "vector":
		var series []struct {
			Value [2]any `json:"value"` // none of a histogram
		}
		if json.Unmarshal(r.Data.Result, &series) != nil {
			return strange, ""
		}
		for _, s := range series {
			values = append(values, s.Value)
		}
	default:
		return strange, ""
	}
	if len(values) == 0 {
		return "the query of " + shown + " has no result", ""
	}
	for _, v := range values {
		text, _ := v[1].(string)
		switch number, err := strconv.ParseFloat(text, 64); {
		case err != nil:
			return strange, "one of " + strconv.Itoa(len(values)) + " series is no number"
		case number != 1:
			return "the query of " + shown + " is not 1", fmt.Sprintf("one of %d values is %s", len(values), strconv.FormatFloat(number, 'g', 6, 64))
		}
	}
	return "", ""
}
