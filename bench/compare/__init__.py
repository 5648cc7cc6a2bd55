"""What bench/run is made of: lines (what is compared), peers (with whom), measure, scaling, report, plots, publish."""
