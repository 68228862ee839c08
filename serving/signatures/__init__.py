"""What exports answer: the functions behind their signatures, of core TensorFlow operations alone."""
