package model_test

import (
	"testing"

	icego "github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/iceberg"
	"github.com/seaice/seaice/internal/model"
)

// Every gap is shown to be one. When iceberg-go closes it, this fails and the
// gap can go.
func TestReaderGapsAreReal(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   model.Config
		build func(s *model.Scene)
	}{
		"identity partition column not in the file": {
			model.Config{Spec: "name"},
			func(s *model.Scene) {
				s.AppendWith(model.Options{Layout: model.Layout{Omit: []iceberg.FieldID{2}}}, s.R(1, "a"))
			},
		},
		"default of a date": {
			model.Config{Version: 3},
			func(s *model.Scene) {
				s.Append(s.R(1, "a"))
				_, err := s.AddColumn(t.Context(), model.Column{Name: "d", Type: icego.DateType{}, Initial: "2026-01-02"})
				s.Do(err)
			},
		},
		"default beyond 2^53": {
			model.Config{Version: 3},
			func(s *model.Scene) {
				s.Append(s.R(1, "a"))
				_, err := s.AddColumn(t.Context(), model.Column{Name: "n", Type: icego.Int64Type{}, Initial: int64(1<<60 + 1)})
				s.Do(err)
			},
		},
		"equality delete over a column the file lacks": {
			model.Config{},
			func(s *model.Scene) {
				s.Append(s.R(1, "a"))
				s.Add("extra", "string")
				s.Append(s.R(2, "b", "x"))
				s.EqualityDelete([]string{"extra"}, s.R(0, nil, nil))
			},
		},
		"equality delete of a promoted column": {
			model.Config{Schema: model.Columns(t, "id int!, name string")},
			func(s *model.Scene) {
				s.Append(s.R(1, "a"), s.R(2, "b"))
				s.Widen("id", "long")
				s.EqualityDelete([]string{"id"}, s.R(1))
			},
		},
		"equality delete in a partition of a promoted float column": {
			model.Config{Schema: model.Columns(t, "id long!, p float"), Spec: "p"},
			func(s *model.Scene) {
				s.Append(s.R(1, 7), s.R(2, 7))
				s.Widen("p", "double")
				s.EqualityDelete([]string{"id"}, s.R(1, 7))
			},
		},
		"one decimal type in two partition fields": {
			model.Config{Schema: model.Columns(t, "id long!, d decimal(9,2)"), Spec: "d, truncate[10](d)", Style: model.Ours},
			func(s *model.Scene) {
				s.Append(s.R(1, "7.25"), s.R(2, "7.25"))
				s.EqualityDelete([]string{"id"}, s.R(1, "7.25"))
			},
		},
		"equality delete in a file with a dropped struct": {
			model.Config{Schema: icego.NewSchema(0,
				icego.NestedField{ID: 1, Name: "id", Type: icego.Int64Type{}, Required: true},
				icego.NestedField{ID: 2, Name: "s", Type: &icego.StructType{FieldList: []icego.NestedField{{ID: 3, Name: "x", Type: icego.Int32Type{}}}}},
				icego.NestedField{ID: 4, Name: "a", Type: icego.Int32Type{}}, icego.NestedField{ID: 5, Name: "b", Type: icego.Int32Type{}},
			)},
			func(s *model.Scene) {
				s.Append(s.R(1, nil, 10, 20), s.R(2, nil, 11, 21))
				s.Do(s.DropColumn(t.Context(), "s"))
				s.EqualityDelete([]string{"a"}, s.R(9, 10, 0))
			},
		},
		"struct of which nothing is left in a file": {
			model.Config{Schema: icego.NewSchema(0,
				icego.NestedField{ID: 1, Name: "id", Type: icego.Int64Type{}, Required: true},
				icego.NestedField{ID: 2, Name: "s", Type: &icego.StructType{FieldList: []icego.NestedField{{ID: 3, Name: "x", Type: icego.Int32Type{}}}}},
			)},
			func(s *model.Scene) {
				s.Append(s.R(1, model.Row{3: int32(7)}))
				s.Do(s.Promote(t.Context(), "s", &icego.StructType{FieldList: []icego.NestedField{{ID: 4, Name: "y", Type: icego.Int32Type{}}}}))
				s.Append(s.R(2, model.Row{4: int32(8)}))
			},
		},
		"unknown field in a manifest": {
			model.Config{Style: model.Style{UnknownField: true}},
			func(s *model.Scene) { s.Append(s.R(1, "a")) },
		},
		"delete manifest labelled data": {
			model.Config{Style: model.Style{DeletesAsData: true}},
			func(s *model.Scene) {
				s.Append(s.R(1, "a"), s.R(2, "b"))
				s.Delete(s.By("id", 1)...)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			s := model.NewScene(t, fl, c.cfg)
			c.build(s)
			require.NotEmpty(t, s.ReaderGap(model.View{}))
			s.Verify() // the model and the files still agree
			want, err := s.Expect(model.View{})
			require.NoError(t, err)
			got, err := model.ReadRows(t.Context(), fl, s.ID, model.View{})
			if err == nil {
				require.NotEqual(t, want, got, "iceberg-go reads it rightly now")
			}
		})
	}
}
