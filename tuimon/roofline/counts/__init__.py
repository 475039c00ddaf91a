"""Operations by formulas on shapes, a file for each family of operators; `operations` is the door."""
