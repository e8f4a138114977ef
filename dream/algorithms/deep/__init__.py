"""Deep regret minimisers: Deep CFR, SD-CFR, OS-SD-CFR, DREAM, ESCHER, VR-DeepDCFR+."""
