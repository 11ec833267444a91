package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seaice/seaice/filer/filertest"
	"github.com/seaice/seaice/internal/model"
)

func TestSceneTellsAStory(t *testing.T) {
	for version := 2; version <= 3; version++ {
		fl := filertest.New(filertest.Options{})
		s := model.NewScene(t, fl, model.Config{Version: version})
		d1 := s.File(s.R(1, "a"), s.R(2, "b"), s.R(3, "c"))
		d2 := s.File(s.R(4, "d"), s.R(5, "e"))
		require.Equal(t, "s3://lake/ns/events-", d1.Path[:20])
		pd := s.DeleteAt(d1, 0, 2)
		require.Equal(t, []int64{0, 2}, pd.Positions[d1.Path])
		require.Equal(t, d1.Path, pd.Referenced)
		s.Tag("before")
		s.Upsert([]string{"id"}, s.R(4, "D"))
		ed := s.EqualityDelete([]string{"id"}, s.R(5))
		require.Len(t, ed.Keys, 1)
		require.Len(t, s.By("id", 1, 2, 4, 5), 2)
		s.Rewrite(d1, d2)
		s.Add("extra", "int")
		s.Append(s.R(6, "f", 7))
		s.Respec("bucket[2](id)")
		s.Overwrite(s.By("name", "f"), s.R(7, "g"))
		s.Verify()
		require.Len(t, s.Head("before").Rows, 3)
		require.Len(t, s.Head("").Rows, 3)
		for p := range s.Live() {
			require.True(t, fl.Exists(p), p)
		}
	}
}

// A model whose checks pass whatever is in the files would prove nothing.
func TestCheckFindsEveryKindOfDamage(t *testing.T) {
	damage := map[string]func(t *testing.T, fl *filertest.Filer, s *model.Scene){
		"a data file swapped for another": func(t *testing.T, fl *filertest.Filer, s *model.Scene) {
			files := s.Head("").DataFiles()
			fl.PutFile(files[0].File.At, fl.Content(files[1].File.At))
		},
		"a data file gone": func(t *testing.T, fl *filertest.Filer, s *model.Scene) {
			fl.RemoveAll(s.Head("").DataFiles()[0].File.At)
		},
		"a delete file gone": func(t *testing.T, fl *filertest.Filer, s *model.Scene) {
			fl.RemoveAll(s.Head("").DeleteFiles()[0].File.At)
		},
		"a manifest swapped for another": func(t *testing.T, fl *filertest.Filer, s *model.Scene) {
			m := s.Head("").Manifests
			var data []*model.Manifest
			for _, x := range m {
				if !x.Deletes {
					data = append(data, x)
				}
			}
			require.GreaterOrEqual(t, len(data), 2)
			fl.PutFile(data[0].At, fl.Content(data[1].At))
		},
	}
	for name, hurt := range damage {
		t.Run(name, func(t *testing.T) {
			fl := filertest.New(filertest.Options{})
			s := model.NewScene(t, fl, model.Config{})
			d1 := s.File(s.R(1, "a"), s.R(2, "b"))
			s.File(s.R(3, "c"), s.R(4, "d"))
			s.DeleteAt(d1, 1)
			s.Verify()
			hurt(t, fl, s)
			require.Error(t, model.Check(t.Context(), s.Table))
		})
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	build := func(seed uint64, style model.Style) filertest.Listing {
		fl := filertest.New(filertest.Options{})
		s := model.NewScene(t, fl, model.Config{Version: 3, Seed: seed, Style: style})
		d1 := s.File(s.R(1, "a"), s.R(2, "b"))
		s.DeleteAt(d1, 1)
		s.Upsert([]string{"id"}, s.R(1, "A"))
		s.Rewrite(s.Head("").DataFiles()[0].File)
		_, err := s.SetStatistics(t.Context(), s.Head("").ID)
		s.Do(err)
		return fl.Dump()
	}
	for _, style := range []model.Style{model.Plain, model.JavaLike} {
		require.Empty(t, build(7, style).Changes(build(7, style)))
		require.NotEmpty(t, build(7, style).Changes(build(8, style)))
	}
}
