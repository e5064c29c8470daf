package pool

// FillIn is the config a pool works with: defaults filled in, all of it checked.
func FillIn(cfg Config) (Config, error) {
	p, err := newPlan(cfg)
	if err != nil {
		return Config{}, err
	}
	return p.Config, nil
}
